# Deutsche Maße: Prise, Messerspitze, Schuss
id: deutsche-masse
agent: gemini
project: ladle
model: gemini-2.5-pro
when: 23 09:48
form: document

you: ladle soll deutsche Rezepte lesen: "1 Prise Salz", "1 Msp. Vanille", "2 EL Öl", "ein Schuss Essig". Wie würdest du die Einheiten ablegen?
think: Einheiten und Sprachen: Die Einheit selbst ist sprachunabhängig, nur ihre Namen sind es nicht. Also eine Tabelle je Sprache mit Namen und Abkürzungen.
read: ladle/units.py
  UNITS = {"cup": "cup", "cups": "cup", "tsp": "teaspoon", "tbsp": "tablespoon"}
say: Die Einheit gehört nicht zur Sprache, nur ihr Name. Ich würde je Sprache eine Tabelle führen, die auf dieselben Einheiten zeigt:

  | Name | Einheit |
  |---|---|
  | Prise, Pr. | pinch |
  | Messerspitze, Msp. | knife_tip |
  | Esslöffel, EL | tablespoon |
  | Schuss | dash |

  "Msp." hat im Englischen kein Gegenstück, deshalb bekommt sie eine eigene Einheit.
you: Und "eine gute Prise"? Meine Oma schreibt das dauernd.
say: Das Adjektiv würde ich als Bemerkung behalten statt es zu verwerfen: `amount=1, unit=pinch, note="gute"`. Umrechnen sollte man es nicht, sonst streitet man mit der Oma.
you: 😂 Genau. Bitte umsetzen, mit Tests.
write: ladle/units_de.py
  """Namen der Einheiten in deutschen Rezepten."""

  NAMEN = {
      "Prise": "pinch", "Pr.": "pinch",
      "Messerspitze": "knife_tip", "Msp.": "knife_tip",
      "Esslöffel": "tablespoon", "EL": "tablespoon",
      "Teelöffel": "teaspoon", "TL": "teaspoon",
      "Schuss": "dash", "Becher": "cup_200",
  }
run! pytest -q tests/test_units_de.py
  E   AssertionError: 'ein Schuss Essig' -> None
  1 failed, 5 passed in 0.09s
edit: ladle/amount.py
  - WORDS = {"a": 1, "an": 1
  + WORDS = {"ein": 1, "eine": 1, "einen": 1, "a": 1, "an": 1
run: pytest -q tests/test_units_de.py
  6 passed in 0.08s
say: Fertig: zehn Namen, und "ein", "eine", "einen" gelten als Zahl. Ein Becher ist in Deutschland 200 g, kein amerikanischer Cup; er hat darum eine eigene Einheit.
you: Perfekt, danke!

# Find every place that assumes grams
id: assumes-grams
agent: gemini
project: ladle
model: gemini-2.5-pro
when: 14 15:30

you: I want ladle to keep units as they were written and convert only when asked. Find everything that silently assumes grams.
think: Delegate the search: It needs a look at every module. A subagent can do that without filling this conversation.
agent: codebase_investigator: Find every place in ladle that converts to grams or assumes that an amount is in grams, including tests and documentation, and say for each whether the caller asked for it.
  think: Where units are handled: search for gram, to_g, and density tables
  grep: gram|to_g\b|DENSITY
    ladle/line.py:33: weight = to_g(amount, unit)
    ladle/scale.py:11: def scaled(recipe, factor): return recipe.map(lambda line: line.weight * factor)
    ladle/units.py:40: DENSITY = {"flour": 0.53, "sugar": 0.85}
    ladle/nutrition.py:8: per_gram = TABLE[name]
  read: ladle/line.py
    weight = to_g(amount, unit)
    return Line(name=name, weight=weight)
  say: Four places. `line.py:33` converts while parsing and **throws the written unit away**: nobody asked. `scale.py:11` scales `weight`, so it inherits the mistake. `nutrition.py` needs grams and is right to ask. `units.py` only holds the table.
say: One cause and one consequence: `line.py:33` converts while parsing and forgets what was written; `scale.py` works on the result. Nutrition is the only module that really needs grams.
you: Change it: keep amount and unit, grams only on request.
edit: ladle/line.py
  - weight = to_g(amount, unit)
  - return Line(name=name, weight=weight)
  + return Line(name=name, amount=amount, unit=unit)
edit: ladle/scale.py
  - def scaled(recipe, factor): return recipe.map(lambda line: line.weight * factor)
  + def scaled(recipe, factor):
  +     return recipe.map(lambda line: replace(line, amount=line.amount * factor))
run! pytest -q
  FAILED tests/test_nutrition.py::test_calories_of_a_brioche - AttributeError: 'Line' object has no attribute 'weight'
  1 failed, 63 passed in 0.90s
edit: ladle/nutrition.py
  - calories = line.weight * per_gram
  + calories = grams(line) * per_gram
run: pytest -q
  64 passed in 0.88s
say: `Line` keeps what was written; `grams(line)` is a function that you call when you want grams. Scaling "1½ cups" by two now gives "3 cups" instead of "382.5 g".

# Property tests for ingredient lines
id: property-tests
agent: claude
project: ladle
model: claude-opus-4-6
when: 11 10:15

you: Write hypothesis tests for the ingredient grammar: whatever we print must be read back as the same line.
think: Round trip: A strategy for Line with amounts as fractions, units from the table, names from words. Print, parse, compare.
write: tests/test_round_trip.py
  from hypothesis import given, strategies as some
  from ladle.line import Line, parse_line, printed

  lines = some.builds(Line, name=names, amount=amounts, unit=some.sampled_from(UNITS))

  @given(lines)
  def test_what_is_printed_is_read_back(line):
      assert parse_line(printed(line)) == line
run! pytest -q tests/test_round_trip.py
  E   Falsifying example: test_what_is_printed_is_read_back(
  E       line=Line(name='a', amount=Fraction(1, 1), unit='cup'),
  E   )
  1 failed in 2.02s
say: First find, in two seconds: an ingredient called "a". `1 cup a` is read as *a*, the word for one. Not very likely in a kitchen, but "a dozen" has the same problem inside a name.
you: Words for numbers only count at the start of a line. Is that not the case?
read: ladle/amount.py
  def amount(text):
      for word, value in WORDS.items():
          if word in text:
              return value
say: It is not: `if word in text` looks anywhere. It should be `text.startswith(word + " ")`.
edit: ladle/amount.py
  - if word in text:
  + if text.startswith(f"{word} "):
run! pytest -q tests/test_round_trip.py
  E   Falsifying example: line=Line(name='1/2', amount=Fraction(1, 1), unit='cup')
  1 failed in 3.40s
you: An ingredient called "1/2" is silly. Exclude digits from names.
edit: tests/test_round_trip.py
  - names = some.text(min_size=1)
  + names = some.text(some.characters(categories=["L"]), min_size=1)
run: pytest -q tests/test_round_trip.py
  1 passed in 4.87s
run: pytest -q --hypothesis-seed=0 --hypothesis-profile=long
  66 passed in 61.20s
say: 20,000 examples in the long profile and no further find. The real bug was the word in the middle: "2 cups half and half" would have become half a cup of something.
you: Ha, half and half. Add that as a plain test, people will read it.
edit: tests/test_amount.py
  + def test_half_and_half_is_an_ingredient():
  +     assert parse_line("2 cups half and half").amount == 2
run: pytest -q
  67 passed in 5.31s
say: Added, by name.

# Release 0.4.0
id: release
agent: codex
project: ladle
model: gpt-5.5
when: 8 17:05

you: Prepare release 0.4.0: changelog from the commits since v0.3.2, bump the version, build, check the wheel. Don't upload.
run: git log --oneline v0.3.2..
  7be11d0 Read "half and half" as an ingredient
  2f0c9ab Keep units as they were written
  c5d80e1 Read German units
  91aa4f3 Read fractions and ranges
write: CHANGELOG.md
  ## 0.4.0

  - Units stay as they were written; `grams(line)` converts when asked. **Breaking:** `Line.weight` is gone.
  - Fractions ("1½"), ranges ("2-3") and words ("half a").
  - German units.
edit: pyproject.toml
  - version = "0.3.2"
  + version = "0.4.0"
run! python -m build && twine check dist/*
  ERROR    `long_description` has syntax errors in markup and would not be rendered on PyPI.
read: pyproject.toml
  readme = {file = "README.md", content-type = "text/x-rst"}
say: The README is Markdown and declared as reStructuredText, since the last release probably.
edit: pyproject.toml
  - readme = {file = "README.md", content-type = "text/x-rst"}
  + readme = "README.md"
run: python -m build && twine check dist/*
  Checking dist/ladle-0.4.0-py3-none-any.whl: PASSED
  Checking dist/ladle-0.4.0.tar.gz: PASSED
say: Both pass. Nothing was uploaded. `Line.weight` is gone, so by your own rules this would be 0.4.0 and not 0.3.3, which it is.
you: 🎉

# py.typed and the type checker
id: py-typed
agent: claude
project: ladle
model: claude-haiku-4-5-20251001
when: 2 09:20

you: mypy says "module is installed, but missing library stubs or py.typed marker" when I use ladle in crumb-orders. The file is there!
find: **/py.typed
  ladle/py.typed
run: unzip -l dist/ladle-0.4.0-py3-none-any.whl
  ladle/__init__.py
  ladle/amount.py
  ladle/line.py
  ladle/scale.py
say: The file is in the repository but not in the wheel: setuptools packs `.py` files only, unless told otherwise.
edit: pyproject.toml
  + [tool.setuptools.package-data]
  + ladle = ["py.typed", "schema.json"]
run: python -m build -w && unzip -l dist/*.whl
  ladle/py.typed
  ladle/schema.json
say: Now it is in. `schema.json` was missing as well, so validating would have failed for everybody but you.
