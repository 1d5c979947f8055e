"""The failures that the crash tests cause: what happens to the store, what memgraph does, and its message.

The tests look up a failure by its name, cause it, and compare the message. The table in `memgraph/docs/failures.md` is generated from this list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """One failure and its consequences.

    Attributes
    ----------
    what, does : str
        The failure, and what memgraph does about it. Markdown.
    says : str
        The message, with … for variable parts. Empty if there is none, or if it varies.
    note : str
        What the table shows instead of a message.
    """

    what: str
    does: str
    says: str = ""
    note: str = ""

    def fits(self, message: str) -> bool:
        """Return whether a message is this failure's, with or without a store id before it."""
        message = re.sub(r"^store [0-9a-f-]{36}: ", "", message)
        return re.fullmatch(".*".join(map(re.escape, self.says.split("…"))), message, re.DOTALL) is not None


FAILURES = (
    Failure(
        "the process is killed, anywhere",
        "every acknowledged write is there, exactly once; every other write is there completely or not at all",
        note="nothing",
    ),
    Failure(
        "the journal ends before its head file says",
        "refuses",
        says="the journal in … ends at event …, but its head file … says … were written: it was truncated or is an old copy; restore the journal from a backup or, to continue with the events it has, run `memgraph repair --accept-head`",
    ),
    Failure(
        "a purge is killed, anywhere",
        "completes it at the next opening, or it has not begun",
        says="completing the purge of event …, which was interrupted",
    ),
    Failure(
        "a payload that a purge removed comes back",
        "shows none of it; `memgraph verify` reports it, and `memgraph purge --complete` removes it again",
        says="event … was purged and has a payload again; run `memgraph purge --complete`",
    ),
    Failure(
        "a compaction is killed, anywhere",
        "the journal is as before, or compacted",
        note="nothing",
    ),
    Failure(
        "a baseline's header or its rows are changed",
        "refuses",
        says="the baseline in … is damaged: it is not what was signed; `memgraph repair` says what can be done",
    ),
    Failure(
        "a baseline is missing",
        "begins with the first event, which is in the archive",
        note="nothing",
    ),
    Failure(
        "an archived event is changed or missing",
        "refuses whatever reads it: history, charts, views of the past and of agents, purges, backups; lists and recalls go on from the baseline",
        says="journal damaged at …, event …: …; `memgraph repair` restores it from a backup, or keeps what verifies",
    ),
    Failure(
        "an event is changed",
        "refuses whatever reads it, a rebuild included; what was made of the events before goes on",
        says="journal damaged at …, event …: …; `memgraph repair` restores it from a backup, or keeps what verifies",
    ),
    Failure(
        "events are swapped, dropped, repeated, or come from an older copy",
        "refuses, as above",
        says="journal damaged at …, event …: event … does not follow event …; `memgraph repair` restores it from a backup, or keeps what verifies",
    ),
    Failure(
        "the journal ends before its head says",
        "refuses",
        says="journal damaged at …, event …: it ends with event …, its head names event …; `memgraph repair` restores it from a backup, or keeps what verifies",
    ),
    Failure(
        "the journal's head is changed, or an older one",
        "verifies every event",
        says="the head of the journal did not match it; all events were verified",
    ),
    Failure(
        "the journal's head is missing",
        "verifies every event",
        note="nothing",
    ),
    Failure(
        "the journal contains events of another store",
        "refuses",
        says="journal damaged at …, event …: it was signed with key …, not with the key given, …; `memgraph repair` restores it from a backup, or keeps what verifies",
    ),
    Failure(
        "the journal is another store's",
        "refuses",
        says="the journal in … is not this key's: it was signed with key …, not with the key given, …; import it with `memgraph keys import FILE`, restore its key file as …, or set MEMGRAPH_KEY",
    ),
    Failure(
        "the database is damaged",
        "refuses",
        says="…: is damaged: …; `memgraph repair` says what can be kept, `memgraph repair --from-backup FILE` restores it",
    ),
    Failure(
        "a repair of a damaged journal is killed, anywhere",
        "loses nothing: what is removed is in quarantine before",
        note="what it said before; the same command repairs it",
    ),
    Failure(
        "the head file of a restored copy is missing",
        "refuses",
        says="the head file … of this restored store is missing; restore it, or accept the journal as it is with `memgraph repair --accept-head`",
    ),
    Failure(
        "a backup is damaged, incomplete or forged",
        "restores nothing",
        says="…: the backup is damaged: …; use another one",
    ),
    Failure(
        "the key of a backup is missing",
        "restores nothing",
        says="… was made with key … of store …, which is …: a backup never contains keys; import it with `memgraph keys import FILE`, restore its key file as …, or set MEMGRAPH_KEY",
    ),
    Failure(
        "a backup or a restoration is killed or interrupted, anywhere",
        "leaves no partial backup and no partial store; a temporary file or folder that a kill leaves is removed by the next attempt",
        note="nothing",
    ),
    Failure(
        "`memgraph move` is killed, anywhere",
        "the old store is as it was; the new place has the whole store, or is not there: repeat the command",
        note="nothing",
    ),
    Failure(
        "the move of a journal of release 0.1 or 0.2 into the database is killed, anywhere",
        "moves it at the next opening",
        note="a notice of the move",
    ),
    Failure(
        "the manifest of a journal of release 0.1 or 0.2 is damaged",
        "refuses",
        says="… is not a journal's manifest; restore it from a backup",
    ),
    Failure(
        "the manifest of a journal of release 0.1 or 0.2 is missing",
        "refuses",
        says="the journal under … has no manifest.json, but it holds events; restore the file from a backup",
    ),
    Failure(
        "journal and head file are empty or missing, but rows, graph or index exist",
        "refuses",
        says="the journal in … holds no events, but … made from some: restore the journal from a backup or, to start over, remove …",
    ),
    Failure(
        "the signing key is missing, or the database is another store's",
        "refuses",
        says="the signing key of the store at … (id …) is missing: import it with `memgraph keys import FILE`, restore its key file as …, or set MEMGRAPH_KEY",
    ),
    Failure(
        "the key file is damaged, or another store's",
        "refuses",
        says="… contains …; move the file away and run `memgraph keys import FILE`, or put back the copy of it that was kept",
    ),
    Failure(
        "a key that verifies earlier events is missing",
        "refuses, and names all that are missing",
        says="keys that verify its events are missing: …; restore them, for example with `memgraph keys import`",
    ),
    Failure(
        "a rotated key has expired, and events still need it",
        "refuses",
        says="events are signed with keys that were rotated and may no longer verify them: …; run `memgraph keys rotate --reseal` to sign them with the present key",
    ),
    Failure(
        "a rotation is killed, anywhere",
        "signs with the earlier key or with the new one; the next rotation uses a new key that was stored before",
        says="the key provider's active key … does not sign this store yet; run `memgraph keys rotate` to change to it",
    ),
    Failure(
        "a resealing is killed, anywhere",
        "all events are signed as before, or all anew",
        note="nothing",
    ),
    Failure(
        "the head file is missing",
        "accepts the journal as it is",
        says="adopted a journal of … events that had no head file: a truncation before now would go unnoticed",
    ),
    Failure(
        "the head file is damaged",
        "refuses",
        says="the head file … is damaged; restore it from a backup, or accept the journal as it is with `memgraph repair --accept-head`",
    ),
    Failure(
        "the head file is another journal's",
        "refuses",
        says="journal damaged at …, event …: the head file names a different event with this number; restore the journal and its head file from one backup or, to continue with this journal, run `memgraph repair --accept-head`",
    ),
    Failure(
        "the head file is behind, as after a power failure",
        "updates it",
        note="nothing",
    ),
    Failure(
        "lock, pid and temporary files are left behind",
        "ignores them",
        note="nothing",
    ),
    Failure(
        "the clock is set back",
        "repeats the last time until the clock has caught up",
        note="nothing",
    ),
    Failure(
        "a vector is missing, or holds zeros, NaN or infinity",
        "finds the memory by its words; `memgraph embed --repair` recomputes the vector",
        says="… damaged or missing, … found by text alone: run `memgraph embed --repair`",
    ),
    Failure(
        "a vector is changed",
        "`verify` and `doctor` report it; `memgraph embed --repair` recomputes it",
        says="…, row … (memory …) differs from what the journal recorded; recompute it with `memgraph embed --repair`, or restore it from a backup",
    ),
    Failure(
        "the copy of the vectors that is searched (`cache/`) is missing, damaged, or another store's",
        "makes it anew",
        note="nothing",
    ),
    Failure(
        "a directory is in place of a file, or a file cannot be read",
        "refuses",
        says="…: … be read: …",
    ),
    Failure(
        "a file is in place of a directory",
        "refuses",
        says="…: …; choose another …",
    ),
    Failure(
        "the store is not writable, or is on a read-only file system",
        "refuses to write; continues to read, using a temporary copy of rows and index if these are not writable",
        says="…: …: the store is read-only; give this user write access to it, or use a copy of it",
    ),
    Failure(
        "Ctrl-C at a command",
        "exit code 130; everything committed so far is kept",
        says="memgraph: interrupted: nothing is half done, and whatever was committed by then is kept; run the same command again to continue",
    ),
    Failure(
        "another process holds the store for too long",
        "waits `lock_timeout_s`, then refuses",
        says="… has been held by … for over … s; try again, or stop that process",
    ),
    Failure(
        "a process is forked while it has a store open",
        "refuses in that process",
        says="the store was opened before this process was forked; open it again in this process",
    ),
    Failure(
        "the disk is full",
        "refuses to write; reads continue but do not record accesses; everything acknowledged is kept",
        says="…: nothing was recorded: …; free some disk space and try again",
    ),
    Failure(
        "rows, index or graph are missing, old, or another store's",
        "catches up, or rebuilds them",
        note="nothing",
    ),
    Failure(
        "the rows are damaged",
        "rebuilds them from the journal",
        says="rebuilding the rows from the journal: …",
    ),
    Failure(
        "rows, graph or index are edited, with lengths, times and digests adjusted to match",
        "does not use any of it: rebuilds what was edited",
        says="rebuilding the rows from the journal: a row of … is not what was written",
    ),
    Failure(
        "the index is damaged",
        "rebuilds it",
        says="the index snapshot … is damaged, or another store's, and will be rebuilt",
    ),
)
