"""Detection on the labelled set. The seen half was there for tuning; the unseen one says how well it went."""

import pytest

from retold.redaction import detector
from retold.redaction.secrets import KINDS, Secret, merge_overlaps
from support.detector_score import detect_with_retold, score
from support.labelled_secrets import hand_written_samples, samples
from support.redaction_page import PAGE, updated_page

LEAST_RECALL, LEAST_PRECISION = 0.98, 0.95


def test_all_of_the_seen_half_is_found_and_nothing_else() -> None:
    assert not score(samples("seen"), detect_with_retold).faults


def test_the_bars_hold_on_the_unseen_half() -> None:
    unseen = score(samples("unseen"), detect_with_retold)
    assert unseen.recall >= LEAST_RECALL
    assert unseen.precision >= LEAST_PRECISION


def test_precision_holds_without_the_contexts_which_are_full_of_secrets() -> None:
    assert score(hand_written_samples("unseen"), detect_with_retold).precision >= LEAST_PRECISION


def test_every_kind_that_is_labelled_is_a_kind_that_is_found() -> None:
    labelled = {
        label.kind for half in ("seen", "unseen") for sample in samples(half) for label in sample.labels
    }
    assert labelled == set(KINDS)


@pytest.mark.parametrize(
    ("kind", "prefixes", "length"),
    [
        ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", 36),
        ("gitlab-token", "glpat- glptt- gldt- glrt- glcbt- glft- glsoat- glagent- glimt- glfeed-", 20),
        ("huggingface-token", "hf_ api_org_", 34),
        ("slack-token", "xoxa- xoxb- xoxe- xoxp- xoxr- xoxs-", 24),
        ("stripe-key", "sk_live_ rk_live_ whsec_", 24),
        ("openai-key", "sk- sk-proj- sk-svcacct- sk-admin- sk-None-", 48),
    ],
)
def test_every_prefix_of_a_service_is_found(kind: str, prefixes: str, length: int) -> None:
    characters = ("q7Rk2VbX9tLm4ZpW8sYd" * 3)[:length]
    for prefix in prefixes.split():
        text = f"echo {prefix}{characters} | tee log"
        assert detector.find_secrets(text) == [Secret(5, 5 + len(prefix) + length, kind)], prefix


def test_a_private_key_that_was_cut_off_does_not_reach_to_the_end_of_the_next() -> None:
    first, last = (f"-----{side} PRIVATE KEY-----" for side in ("BEGIN", "END"))
    bodies = [
        f"\n{'q7Rk2VbX9tLm4ZpW' * 4}\n{piece * 4}\n" for piece in ("8sYdQ7Rk2VbX9tLm", "4ZpW8sYdQ7Rk2VbX")
    ]
    text = f"{first}{bodies[0]}(and so on)\n{first}{bodies[1]}{last}\n"
    found = detector.find_secrets(text)
    assert [one.kind for one in found] == ["private-key", "private-key"]
    assert "".join(text[one.start : one.end] for one in found).split() == "".join(bodies).split()


def test_short_texts_are_passed_over_only_where_nothing_would_be_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [line for sample in samples("seen") for line in sample.text.splitlines()]
    found = [detector.find_secrets(text) for text in texts]
    monkeypatch.setattr(detector, "_SHORT", 0)
    assert [detector.find_secrets(text) for text in texts] == found


@pytest.mark.parametrize(
    "text",
    [
        "hasło: «»",
        "a senha do banco é «»",
        "wachtwoord: «»",
        "lösenord = «»",
        "пароль: «»",
        "Пароль: «»",
        "数据库密码是 «»",
        "密码\uff1a«»",
        "パスワード: «»",
        "パスワードは «» です",
        '- name: DB_PASSWORD\n  value: "«»"',
        '{"name": "DB_PASSWORD", "value": "«»"}',
        '{\\n \\"name\\": \\"DB_PASSWORD\\",\\n \\"value\\": \\"«»\\"}'.replace("\\n", "\n"),
        'var pwd = @"«»";',
        "password: >-\n  «»\n",
        "password: |\n  «»\n",
        "the password for the staging page: «»",
        "| host | user | `pw` |\n|------|------|----|\n| db1 | root | `«»` |",
        "> | Service | Password |\n> | :-- | :-- |\n> | nightly | none |\n> | shop | «» |\n",
        "WPA2 key: «»",
        "Enter passphrase for /etc/ssh/host_key.pem: «»\n",
        "printf '%s\\n' \"«»\" | sudo -S apt-get update",
        'machine ftp.example.net login ann password "«»"',
        'ansible-playbook site.yml -e "ansible_become_pass=«»"',
        "schtasks /create /tn nightly /ru ann /rp «»",
        "xfreerdp /v:10.2.3.4 /u:ann /p:'«»' /cert:ignore",
        "keytool -importkeystore -srcstorepass «» -alias upload",
        "$x = ConvertTo-SecureString '«»' -AsPlainText -Force",
        '$x = ConvertTo-SecureString -AsPlainText -Force -String "«»"',
        'expect "*assword:*"\nsend "«»"',
    ],
)
def test_a_password_is_found_however_it_is_named(text: str) -> None:
    invented = "Birke!4711tor"
    before = text.index("«»")
    (found,) = detector.find_secrets(text.replace("«»", invented))
    assert found == Secret(before, before + len(invented), "password")


@pytest.mark.parametrize(
    "text",
    [
        "gpg passphrase: «»",
        "The passphrase is «».\nNext step",
        'passphrase = "«»"',
        "gpg --batch --passphrase '«»' -d s.gpg",
        'ssh-keygen -t ed25519 -N "«»" -f id',
        'network={\n  ssid="Nebel"\n  psk="«»"\n}',
    ],
)
def test_a_passphrase_of_plain_words_is_found(text: str) -> None:
    invented = "amber violin staple orbit"
    before = text.index("«»")
    (found,) = detector.find_secrets(text.replace("«»", invented))
    assert found == Secret(before, before + len(invented), "password")


@pytest.mark.parametrize(
    "text",
    [
        "hasło jest wymagane",
        "la senha é obrigatória",
        "wachtwoord vergeten? klik hier",
        "пароль не может быть пустым",
        "密码不能为空",
        "密码是必填的",
        "パスワードは必須です",
        "パスワードを入力してください",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db, key: password}",
        '{"name": "password", "value": "required"}',
        "password for staging: ask Maria",
        "| field | password |\n|---|---|\n| type | str |\n| column | password_hash |\n| coded by | argon2id |\n| read | user.password |",
        "| password | strength |\n|---|---|\n| <your-password> | - |\n| ******** | - |",
        "Enter passphrase for /etc/ssh/host_key.pem: \nPermission denied",
        "openssl rsa -in k.pem -passin pass:$KEY_PASS",
        "passphrase: read from the environment of the process",
        "passphrase: must have at least four words",
        'ssh-keygen -N "the new passphrase"',
        'psk="$WIFI_PSK"',
        'f"Driver=x;Uid={user};Pwd={settings.db_password};"',
        "keytool -genkey -storepass $STOREPASS",
        "password: |\n  Optional[str]\n",
        "ConvertTo-SecureString $plain -AsPlainText -Force",
        'expect "*assword:*"\nsend "$env(PW)"',
    ],
)
def test_a_sentence_about_passwords_stays(text: str) -> None:
    assert not detector.find_secrets(text)


def test_the_page_has_the_numbers_of_today() -> None:
    told = PAGE.read_text(encoding="utf-8")
    assert updated_page(told) == told


def test_findings_that_overlap_become_one_over_both() -> None:
    found = [
        Secret(4, 9, "secret"),
        Secret(0, 6, "password"),
        Secret(5, 6, "email"),
        Secret(9, 12, "jwt"),
    ]
    assert merge_overlaps(found) == [Secret(0, 9, "password"), Secret(9, 12, "jwt")]


KEY_ID, KEY = "AKIA" + "Q7RKEXVBX9TLM4ZP", "w8sYd3Hc6Jf1Kg5Mn0QaR7Rk2VbX9tLm4ZpW8sYd"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"Access key ID,Secret access key\n{KEY_ID},{KEY}\n", KEY),
        (f"| {KEY_ID} | {KEY} |", KEY),
        ("Le mot de passe du wifi est : Merle&Vent42", "Merle&Vent42"),
        (f"export AWS_SECRET_ACCESS_KEY={KEY[:22]}\n{KEY[22:]}\nls", f"{KEY[:22]}\n{KEY[22:]}"),
        ("Driver={ODBC Driver 18};Server=tcp:x;Uid=app;Pwd={Merle;Vent42};", "{Merle;Vent42"),
        ("openssl enc -in a -out b -pass pass:Merle,Vent42", "pass:Merle,Vent42"),
        ("| id | secret |\n|---|---|\n| 1 | q7Rk2VbX9tLm4ZpW8sYd |", "q7Rk2VbX9tLm4ZpW8sYd"),
        ('variable "admin_password" {\n  type    = string\n  default = "Merle#Vent42"\n}', "Merle#Vent42"),
    ],
)
def test_a_secret_beside_its_name_is_found(text: str, secret: str) -> None:
    assert secret in [text[start:end] for start, end, _ in detector.find_secrets(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Le mot de passe est : obligatoire",
        'variable "db_password" {\n  type = string\n}\nvariable "region" {\n  default = "eu-west-1a"\n}',
        'variable "db_password" {\n  default = ""\n}',
    ],
)
def test_what_stands_beside_such_a_name_and_is_no_secret_stays(text: str) -> None:
    assert detector.find_secrets(text) == []
