# The RSS feed is not valid
id: rss-feed
agent: gemini
project: mira-notes
model: gemini-2.5-flash
when: 27 20:12
form: document

you: A reader says my feed is broken in NetNewsWire. https://validator.w3.org/feed says "pubDate must be an RFC-822 date-time". Where does it come from?
fetch: https://validator.w3.org/feed/docs/error/InvalidRFC2822Date.html
  pubDate must be an RFC-822 date-time, for example "Wed, 02 Oct 2002 13:00:00 GMT".
grep: pubDate
  templates/feed.xml:9: <pubDate>{{ post.date }}</pubDate>
say: The template prints the date as Python does, `2026-10-18`. RSS wants `Sun, 18 Oct 2026 00:00:00 GMT`.
you: fix
edit: templates/feed.xml
  - <pubDate>{{ post.date }}</pubDate>
  + <pubDate>{{ post.date | rfc822 }}</pubDate>
edit: build.py
  + env.filters["rfc822"] = lambda day: format_datetime(datetime.combine(day, time(), UTC), usegmt=True)
run: python build.py && xmllint --noout public/feed.xml
  built 41 posts
say: The feed is valid now. `format_datetime` from `email.utils` does exactly this format.

# Dark mode without the white flash
id: dark-mode
agent: claude
project: mira-notes
model: claude-sonnet-4-6
when: 20 22:10

you: The site has dark mode with a switch, but every page load flashes white first. How do I avoid that without a framework?
read: static/theme.js
  document.addEventListener("DOMContentLoaded", () => {
    if (localStorage.theme === "dark") document.documentElement.classList.add("dark");
  });
think: Flash: The script waits for DOMContentLoaded, so the first paint is light. It must run in the head, before the body.
say: Your script waits for `DOMContentLoaded`, and by then the white page has been painted. It has to run in the head, blocking, before the first paint. Three lines inline are enough:

  ```html
  <script>if (localStorage.theme === "dark" || (!localStorage.theme && matchMedia("(prefers-color-scheme: dark)").matches)) document.documentElement.classList.add("dark")</script>
  ```
you: Inline script means I have to change the CSP, right?
say: Yes, by a hash of exactly that text: `script-src 'self' 'sha256-…'`. Your build can compute it.
you: Hm, no. Put it in a file instead.
say: A file works too, if it is in the head and **not** `defer`: it blocks for one small request, which is cached after the first page.
rewind:
you: OK, compute the hash in build.py.
edit: build.py
  + def csp_hash(script: str) -> str:
  +     """What the content security policy calls an inline script."""
  +     return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
edit: templates/base.html
    <head>
  +   <script>{{ theme_script }}</script>
run: python build.py
  built 41 posts
say: No flash any more, and the policy names the script by its hash. If you edit the script the hash follows at the next build.

# Proofread the sourdough post
id: proofread
agent: gemini
project: mira-notes
model: gemini-3.8-flash
when: 13 19:44

you: Proofread this, keep my voice, tell me what you changed:

  "My starter is called Gerda. She lives in a jar since 2019 and she has opinion's. When it's cold she sulks, when it's hot she doubles in three hours and climbs out the jar. The trick isn't a recipe, its attention."
say: "My starter is called Gerda. She **has lived** in a jar since 2019, and she has **opinions**. When it's cold she sulks; when it's hot she doubles in three hours and climbs out **of** the jar. The trick isn't a recipe, **it's** attention."

  Changed: the tense (since 2019), two apostrophes, "out of", and a semicolon where two sentences ran on. The last line is very good, leave it.
you: Title ideas? Not clever ones.
say: - Gerda
  - Attention, not a recipe
  - Seven years with a jar

# Responsive images at build time
id: image-sizes
agent: codex
project: mira-notes
model: gpt-5.5
when: 17 21:20

you: Photos in posts are 4 MB each. At build time make 480, 960 and 1600 px versions as WebP and write srcset. No Node please, it's a Python build.
read: build.py
  def copy_static() -> None:
      shutil.copytree("static", "public", dirs_exist_ok=True)
think: Using Pillow: resize with Lanczos, cache by content hash so that a build stays fast.
write: images.py
  """Photos in three sizes: made once, and known by what is in them."""

  from hashlib import sha256
  from pathlib import Path
  from PIL import Image, ImageOps

  WIDTHS = (480, 960, 1600)

  def versions(photo: Path, out: Path) -> list[Path]:
      name = sha256(photo.read_bytes()).hexdigest()[:12]
      made = [out / f"{photo.stem}-{name}-{width}.webp" for width in WIDTHS]
      if not all(path.exists() for path in made):
          image = ImageOps.exif_transpose(Image.open(photo))
          for path, width in zip(made, WIDTHS, strict=True):
              image.resize((width, round(image.height * width / image.width)), Image.LANCZOS).save(path, quality=78)
      return made
run! python build.py
  ModuleNotFoundError: No module named 'PIL'
run? pip install pillow
  no
you: use uv, not pip: uv add pillow
run: uv add pillow && uv run python build.py
   + pillow==12.0.0
  built 41 posts, 118 photos in 354 versions (38.2 s)
run: uv run python build.py
  built 41 posts, 118 photos in 354 versions (0.9 s)
say: 38 seconds the first time, under one afterwards: a photo that did not change is not made again. The heaviest page went from 21 MB to 640 KB. `exif_transpose` matters for photos from your phone, which would lie on their side otherwise.

# Alt texts for the October photos
id: alt-texts
agent: gemini
project: mira-notes
model: gemini-2.5-pro
when: 9 20:20

you: Write alt texts for the photos in posts/2026-10-*. Short, what one sees, no "image of". You can't see them but the captions and file names say a lot.
find: posts/2026-10-*/*.jpg
  posts/2026-10-04-rye/crumb-closeup.jpg
  posts/2026-10-04-rye/three-loaves-window.jpg
  posts/2026-10-18-market/stall-rain.jpg
read: posts/2026-10-18-market/index.md
  ![](stall-rain.jpg)
  *It rained all morning. We sold out anyway.*
think: Careful: I must not invent details. Stay with what file name and caption say.
say: From names and captions alone:

  - `crumb-closeup.jpg`: "The open crumb of a rye loaf, close up"
  - `three-loaves-window.jpg`: "Three loaves on a window sill"
  - `stall-rain.jpg`: "Our market stall in the rain"

  I do not know whether the loaves are whole or whether anybody is at the stall, so I left that out.
you: Good enough. The loaves are on a shelf, in front of the window.
edit: posts/2026-10-04-rye/index.md
  - ![](three-loaves-window.jpg)
  + ![Three loaves on a shelf in front of a window](three-loaves-window.jpg)
say: Corrected, and the other two are in.

# CSS for small caps
id: small-caps
agent: claude
project: mira-notes
model: claude-haiku-4-5-20251001
when: 8 23:01
marks: untitled

you: real small caps in css, not shrunken capitals?
say: `font-variant-caps: small-caps` uses the font's own small capitals if it has them, and shrinks capitals if not. To forbid the shrinking: `font-synthesis-small-caps: none`. Your EB Garamond has them.

# Clean up old drafts
id: old-drafts
agent: gemini
project: mira-notes
model: gemini-3.8-flash
when: 5 18:33

you: There are drafts from 2021 that I will never finish. Which ones are older than three years?
run: find drafts -name "*.md" -mtime +1095
  drafts/2021-02-spelt.md
  drafts/2021-07-oven-rant.md
  drafts/2022-01-why-static.md
say: Three: spelt, the oven rant, and "why static".
you: remove them
run? rm drafts/2021-02-spelt.md drafts/2021-07-oven-rant.md drafts/2022-01-why-static.md
you: wait, not the oven rant. I want to keep that one.
run: git rm drafts/2021-02-spelt.md drafts/2022-01-why-static.md
  rm 'drafts/2021-02-spelt.md'
  rm 'drafts/2022-01-why-static.md'
say: The rant stays. I used `git rm`, so the other two can be brought back from the history.

# Descriptions for the twenty oldest posts
id: descriptions
agent: gemini
project: mira-notes
model: gemini-3.8-flash
when: 11 21:15

you: The twenty oldest posts have no description in their front matter, so search engines show the first sentence, which is usually "Hello again". Go through them one by one and write one sentence each, in my voice: plain, no exclamation marks.
todo:
  [>] Describe twenty posts
  [ ] Build the site and look for gaps
think: One at a time: Read each post, write a description under 150 characters, and build at the end.
each: post | opening | description
  2019-03-first-loaf | Hello again. Today I burnt my first loaf. | How I burnt my first loaf, and what the second one taught me.
  2019-04-gerda | This is Gerda. She is a jar of flour and water. | Starting a sourdough from flour, water and two weeks of patience.
  2019-05-oven-stone | Hello again. I bought a stone. | A pizza stone against a steel: what a month of baking on both showed.
  2019-07-heat-wave | It is 36 degrees and the dough does what it wants. | Baking in a heat wave: colder water, shorter rests, and giving up at noon.
  2019-09-market | Hello again. We had a stall. | Our first market day: what we baked, what we sold, what we ate ourselves.
  2019-11-rye | Rye is not wheat, and it told me so. | Why rye dough sticks to everything, and why that is fine.
  2020-01-scale | I weighed my spoons. | Why I stopped measuring flour by the cup.
  2020-03-yeast | Hello again. There is no yeast in town. | Bread without yeast from the shop: three ways that worked.
  2020-04-flour | Flour has numbers here. | What the numbers on German flour mean, in one table.
  2020-06-python | I wrote a program that scales recipes. | A small Python script that scales recipes, and the mistake in it.
  2020-08-crumb | Hello again. I cut forty loaves in half. | What the holes in a crumb tell about the dough, with photos of forty loaves.
  2020-10-cold-proof | The fridge is the best baker I know. | Proofing overnight in the fridge: times, temperatures, and one warning.
  2020-12-stollen | Grandmother's card says: butter, more butter. | My grandmother's stollen, with her amounts and my doubts.
  2021-01-static | Hello again. This site is files now. | Why I left the blog software for a folder of Markdown files.
  2021-03-pretzels | Lye is not a toy. | Pretzels with real lye: gloves, goggles, and what soda cannot do.
  2021-05-sensor | I put a thermometer in the proofing box. | A sensor for the proofing box, from a parts list to a graph.
  2021-08-ciabatta | Wet dough, wet hands, wet table. | Ciabatta with eighty percent water, and how to hold it.
  2021-10-loaf-maths | Baker's percentages are just fractions. | Baker's percentages explained with one loaf and no formulas.
  2022-02-mill | Hello again. I bought a mill. | Milling at home: what fresh flour changes, and what it does not.
  2022-05-shop | We opened. | The day we opened Crumb & Co., hour by hour.
  ---
  read: posts/{post}/index.md
    ---
    title: {post}
    ---
    {opening}
  edit: posts/{post}/index.md
    + description: {description}
say: All twenty have one. The longest has 78 characters.
you: "Grandmother's stollen with her amounts and my doubts" made me laugh. Build it and check that each is in the page.
run: python build.py && grep -L 'name="description"' public/posts/*/index.html
  built 41 posts
say: Built: no page is without a description.

# Which posts mention the old stall?
id: old-stall
agent: gemini
project: mira-notes
model: gemini-2.5-flash
when: 25 17:50
form: document
marks: untitled

you: which posts still mention the market stall in Hafenstraße? we moved
grep: Hafenstraße
  posts/2019-09-market/index.md:14: You find us in Hafenstraße, every Saturday.
  posts/2023-04-anniversary/index.md:3: The stall in Hafenstraße is four years old.
say: Two: the market post of 2019, and the anniversary in 2023.
you: show me the anniversary one
read! posts/2023-04-aniversary/index.md
  File not found: posts/2023-04-aniversary/index.md
