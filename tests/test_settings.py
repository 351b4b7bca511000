"""What a person set: read, refused where it is wrong, kept with its comments, and used."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from lab import settings, store
from lab.__main__ import cli
from lab.errors import BadInput
from lab.settings import Settings


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("BRANCHLAB_DATA", str(tmp_path))
    return tmp_path


def test_without_a_file_everything_has_its_default() -> None:
    assert settings.load() == Settings()
    assert settings.lease_s() == 30.0


def test_what_is_saved_is_read_again_and_comments_stay(folder: Path) -> None:
    settings.path().write_text('# of our office\ntheme = "dark" # I like it\n', "utf-8")
    settings.save(Settings(theme="light", lease_s=60))
    assert settings.load() == Settings(theme="light", lease_s=60)
    text = settings.path().read_text("utf-8")
    assert "# of our office" in text
    assert "# I like it" in text
    assert [file.name for file in folder.iterdir()] == ["settings.toml"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('theme = "blue"', "theme: write one of system, light, dark"),
        ("lease_s = 5", "lease_s: write whole seconds from 15 to 300"),
        ("lease_s = true", "lease_s: write whole seconds"),
        ("lease_s = 30.5", "lease_s: write whole seconds"),
        ('data = "runs"', "data: write a whole path"),
        ("motion = 1", "motion: write true or false"),
        ("notify = 0", "notify: write true or false"),
        ("colour = 1", "unknown key colour: write one of data, lease_s, motion, notify, theme"),
        ("theme = ", "settings.toml"),
    ],
)
def test_a_wrong_file_is_refused_with_what_to_write(text: str, told: str) -> None:
    settings.path().write_text(text, "utf-8")
    with pytest.raises(BadInput) as raised:
        settings.load()
    assert told in str(raised.value)
    assert "Correct the file, or remove it" in raised.value.advice


def test_the_folder_for_data_is_the_one_that_is_set_unless_the_environment_names_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.save(Settings(data=str(tmp_path / "elsewhere")))
    assert store.data_folder() == tmp_path
    monkeypatch.setattr(settings, "path", lambda: tmp_path / "settings.toml")
    monkeypatch.delenv("BRANCHLAB_DATA")
    assert store.data_folder() == tmp_path / "elsewhere"


def test_a_command_tells_a_wrong_file_before_it_does_anything() -> None:
    settings.path().write_text("lease_s = 5\n", "utf-8")
    told = CliRunner().invoke(cli, ["runs"])
    assert told.exit_code == 2
    assert "lease_s: write whole seconds" in told.stderr
    assert "Correct the file" in told.stderr
