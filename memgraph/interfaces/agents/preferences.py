"""What was chosen when a client was connected, kept in the store's directory for its hooks."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from memgraph.disk.files import make_private_folder, write_private
from memgraph.interfaces.agents.sessions import folder_of
from memgraph.model.base import Model


class Preferences(Model):
    """Choices for a client.

    Attributes
    ----------
    answer_orders : bool
        Ask the agent, once in a session, to answer the work orders that the session caused.
    was_asked : bool
        The user has chosen this.
    """

    answer_orders: bool = False
    was_asked: bool = False


def preferences_of(home: Path, client: str) -> Preferences:
    """Return the choices for a client; the defaults if the file is missing or unreadable."""
    try:
        return Preferences.model_validate_json(_path(home, client).read_bytes())
    except (OSError, ValidationError, ValueError):
        return Preferences()


def keep_preferences(home: Path, client: str, preferences: Preferences) -> None:
    """Keep the choices for a client.

    Raises
    ------
    StorageError
        The file cannot be written.
    """
    make_private_folder(folder_of(home, client))
    write_private(_path(home, client), preferences.model_dump_json().encode())


def forget_preferences(home: Path, client: str) -> None:
    """Remove the choices for a client."""
    _path(home, client).unlink(missing_ok=True)


def _path(home: Path, client: str) -> Path:
    return folder_of(home, client) / "preferences.json"
