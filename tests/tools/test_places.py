from pathlib import Path

import pytest

from bridge.paths import Home
from bridge.tools.places import is_own, is_private, shown

USER = Path("/home/ann")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.mark.parametrize(
    "path",
    """
    .ssh/config .gnupg/x .aws/config .azure/a .kube/config .docker/config.json .netrc .git-credentials
    .npmrc .pypirc
    .cargo/credentials .cargo/credentials.toml .config/gh/hosts.yml .config/gcloud/x .config/hub
    .config/google-chrome/a
    .config/chromium/a .mozilla/a .password-store/a .local/share/keyrings/a .codex/a .claude/a
    .claude.json .grok/a .gemini/oauth_creds.json .local/share/opencode/auth.json .config/opencode/a
    .scv/a
    """.split(),
)
def test_the_users_credentials_are_private(path: str, home: Home) -> None:
    assert is_private(USER / path, home, USER)


@pytest.mark.parametrize(
    "path",
    """
    /etc/shadow /etc/gshadow /etc/ssh/x /etc/sudoers /etc/sudoers.d/a /root /root/a /proc/1/environ /sys/a
    /dev/sda
    """.split(),
)
def test_the_systems_secrets_are_private(path: str, home: Home) -> None:
    assert is_private(Path(path), home, USER)


@pytest.mark.parametrize(
    "name",
    """
    .env .ENV .env.local my-credentials.txt Credential private_key.txt a.pem A.PEM a.key a.p12 a.pfx a.kdbx
    id_rsa id_rsa.pub ID_ECDSA id_ed25519.bak id_dsa_old
    """.split(),
)
def test_telling_names_are_private_also_of_a_folder(name: str, home: Home) -> None:
    assert is_private(Path("/srv") / name, home, USER)
    assert is_private(Path("/srv") / name / "inner.txt", home, USER)


@pytest.mark.parametrize(
    "path",
    """
    /home/ann/report.pdf /srv/environment /srv/.envrc /srv/keyboard /srv/a.pem.txt /home/bob/.config/other
    /etc/hostname /home/ann/.cargo/config /rooted/a
    """.split(),
)
def test_other_files_may_be_sent(path: str, home: Home) -> None:
    assert not is_private(Path(path), home, USER)


def test_a_private_folder_is_known_by_whatever_name(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where ``.SSH`` is ``.ssh``: here the file system is made to say so."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".SSH").mkdir()
    assert not is_private(tmp_path / ".SSH" / "config", home, tmp_path)
    real = Path.stat
    monkeypatch.setattr(Path, "stat", lambda path: real(Path(str(path).replace(".SSH", ".ssh"))))
    assert is_private(tmp_path / ".SSH" / "config", home, tmp_path)
    assert is_private(tmp_path / ".SSH", home, tmp_path)


def test_of_the_home_only_the_workspace_and_what_the_chat_received_may_be_sent(home: Home) -> None:
    root = home.root
    for private in (
        root,
        home.config,
        home.db,
        home.outbox / "a",
        root / "credentials",
        root / "workspaces/a",
    ):
        assert is_private(private, home, USER)
    assert not is_private(root / "workspace" / "a.txt", home, USER)
    received = root / "state/media/feishu/main/abc/a.png"
    assert not is_private(received, home, USER, [received])
    for others in ([], [received.with_name("b.png")]):
        assert is_private(received, home, USER, others)
    for never in (home.config, home.outbox / "a", home.db):  # whatever a client of the socket has named
        assert is_private(never, home, USER, [never])
    assert is_private(root / "workspace" / ".env", home, USER)


def test_a_home_in_roots_own_folder_is_judged_as_any_other() -> None:
    home = Home(Path("/root/.turnbridge"))
    assert not is_private(home.root / "workspace/a.txt", home, Path("/root"))
    assert is_private(home.config, home, Path("/root"))


def test_the_daemons_files_are_its_own(home: Home, tmp_path: Path) -> None:
    assert is_own(home.config, home)
    assert is_own(home.root / "state/media/x/y/z/a.png", home)
    assert not is_own(home.root / "workspace", home)
    assert not is_own(tmp_path / "a", home)


def test_a_name_that_is_no_text_can_be_shown() -> None:
    assert shown("a\udcff") == "a\ufffd"
