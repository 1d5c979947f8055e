"""The steps of an agent's session: which program each runs, whether it acts, and which of them attempt the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from memgraph.model.build import BuildTask
from memgraph.text import lazy_re as re
from memgraph.text.cutting import cut

MAX_COMMAND_CHARS = 160
_SAME_COMMAND_OVERLAP = 0.5

_PREPARATION = re.compile(
    r"^(?:\s{0,4}(?:cd\s[^&;|\n]{1,200}(?:&&|;)|[A-Z_][A-Z0-9_]{0,40}=(?:\x22[^\x22\n]{0,200}\x22|'[^'\n]{0,200}'|[^\s\x22']\S{0,200})?\s|sudo\s|time\s|env\s|timeout\s\d\S{0,8}\s|(?:uv|poetry|pipenv|hatch|rye|pdm)\srun\s))+"
)
_REPORTS = re.compile(
    r"\s+2>&1|\s*\|\s*(?:tail|head|grep|tee|less|cat|wc|sort)\b[^|;&]{0,200}|\s-{1,2}(?:q+|v+|x|s|quiet|verbose|tb=\w+|no-header|no-color|lf|color\S*)(?=\s|$)"
)
"""What changes only how much a command prints."""
_LOOKS = frozenset(
    str.split(
        "ls cd pwd cat head tail less more grep rg egrep find fd find_file search_dir search_file open goto scroll_up scroll_down file strings "
        "wc which type echo printf date whoami env printenv tree stat du df ps read glob grep_search todowrite todoread task websearch webfetch "
        "ls_dir view history man help think exit_plan_mode exitplanmode toolsearch askuserquestion jq sed awk sleep true decompile disassemble xxd hexdump "
        "update_plan view_image taskoutput bashoutput killshell agent skill"
    )
)
_EDITS = frozenset(
    str.split(
        "edit write multiedit notebookedit insert str_replace str_replace_editor apply_patch create append replace"
    )
)
_WITH_SCRIPTS = frozenset({"npm", "pnpm", "yarn", "bun"})
_WITH_SUBCOMMANDS = _WITH_SCRIPTS | {"git", "cargo", "go", "docker", "make", "alembic", "kubectl", "terraform"}
_WITHOUT_SUBCOMMANDS = _LOOKS | frozenset(
    str.split(
        "python python3 node ruby perl php bash sh zsh java pytest tox nox mypy pyright ruff flake8 eslint tsc jest vitest curl wget ping nc "
        "mkdir rm mv cp touch chmod chown ln kill pkill sqlite3 psql mysql ssh scp rsync diff patch tar zip unzip gcc g++ clang rustc"
    )
)
_BARE_WORD = re.compile(r"[a-z][a-z0-9_-]{0,40}")
_CREATES = frozenset({"write", "create"})
_NPM_LOOKS = frozenset(str.split("view info ls list outdated why explain audit"))
_GIT_LOOKS = frozenset(str.split("status diff log show branch blame ls-files rev-parse remote stash grep describe"))
QUOTED = re.compile(r"'[^']{0,2000}'|\"[^\"]{0,2000}\"")
_WRITES = re.compile(r"^sed\s(?:-\w+\s){0,3}-i|(?<![\d&<=-])>{1,2}\s{0,2}(?!/dev/null|&)[\w~./$-]|\|\s{0,2}tee\s")
"""What makes a command that looks one that changes a file."""
_CHECKS = re.compile(
    r"(?:python3? -m )?(?:pytest|tox|nox|unittest|mypy|pyright|ruff|flake8|eslint|tsc|jest|vitest|curl|wget|nc|ping)\b|"
    r"(?:npm|yarn|pnpm|bun|cargo|go|make|mvn|gradle|dotnet|npx|bundle exec|just)\s(?:run\s|exec\s)?\S{0,20}(?:test|check|lint|vet|clippy|jest|vitest|tsc|typecheck|build)|(?:python3?|node|ruby|perl|bash|sh) -[ec]\b"
)
"""Commands that report on a state without changing it."""
ENDS = frozenset({"submit", "exit", "exit_cost", "exit_forfeit"})
CALL = re.compile(r"\w{1,80}\(")
_PURPOSE = re.compile(
    r"\bto ((?:see|check|reproduce|replicate|make sure|ensure|verify|test|fix|find|modify|handle|print|retrieve|recover|get|revert|use|include|allow|"
    r"prevent|avoid|support|round|change|replace|remove|update|add) [^\n.;!]{4,80}?)(?=[,.;!\n]|$)"
)
_DONE = re.compile(r"\b(?:updated|modified|changed|rewritten|fixed|edited) to ([^\n.;!]{4,160}?)(?=[,.;!\n]|$)")
_HIDES = re.compile(r"\|\||(?<!\|)\|(?!\|)|;")
_SUCCESS = re.compile(
    r"\b(?:[1-9]\d* passed|passed|success\w*|succeeded|ok|done|built|compiled|completed?|finished|installed|up to date|0 (?:errors?|failed)|no (?:errors?|issues))\b",
    re.IGNORECASE,
)
_CHAINED = re.compile(r"&&|\|\|?|;")
_WORD = re.compile(r"[\w./:=@-]+")


@dataclass(frozen=True)
class Step:
    """One step, with cached properties."""

    task: BuildTask
    place: int

    @cached_property
    def command(self) -> str:
        """The command's first line without its preparation; without a command, the step's name."""
        text = self.task.command or self.task.description
        return _PREPARATION.sub("", text[:4_000].strip()).split("\n", 1)[0].strip()[:200]

    @cached_property
    def essence(self) -> str:
        """The whole command without what only changes how much it prints."""
        text = self.task.command or self.task.description
        return " ".join(_REPORTS.sub("", text[:8_000]).split())

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the command."""
        return frozenset(_WORD.findall(_REPORTS.sub("", self.command).casefold()))

    @cached_property
    def program(self) -> str:
        """The program run: the command's or tool's name with its subcommands or its script."""
        if CALL.match(self.command):
            return self.command.split("(", 1)[0].casefold()
        if not self.task.command and ":" in self.task.description[:40]:
            return self.task.description.split(":", 1)[0].strip().casefold()
        words = self.command.split()
        name = words[0].rsplit("/", 1)[-1].casefold() if words else ""
        if name in _WITH_SCRIPTS and words[1:2] == ["run"]:
            return " ".join(words[:3]).casefold()
        if name in _WITH_SUBCOMMANDS:
            return f"{name} {words[1].casefold()}" if len(words) > 1 else name
        if name in _WITHOUT_SUBCOMMANDS or not self.task.command:
            return name
        return " ".join([name, *takewhile(_BARE_WORD.fullmatch, words[1:3])])

    @property
    def can_be_repeated(self) -> bool:
        """Whether it is a complete command; a tool call has the arguments of one case."""
        whole = _PREPARATION.sub("", self.task.command[:4_000].strip())
        return whole == self.command and not CALL.match(whole)

    @property
    def edits(self) -> bool:
        """Whether it edits a file."""
        return self.program.split(" ")[0] in _EDITS

    @property
    def creates(self) -> bool:
        """Whether it writes a whole file."""
        return self.program in _CREATES

    @property
    def looks(self) -> bool:
        """Whether it only looks around, so that its outcome says little."""
        name, _, verb = self.program.partition(" ")
        if name in _LOOKS and self.task.command:
            return _WRITES.search(QUOTED.sub("", self.command)) is None
        is_query = (name == "git" and verb in _GIT_LOOKS) or (name in _WITH_SCRIPTS and verb in _NPM_LOOKS)
        return not name or name in _LOOKS or is_query

    @property
    def runs(self) -> bool:
        """Whether it runs a program that does more than look."""
        return not self.looks and not self.edits and self.program not in ENDS

    @property
    def acts(self) -> bool:
        """Whether it is a command that changes something."""
        return self.runs and not _CHECKS.match(self.command) and not CALL.match(self.command)

    @property
    def worked(self) -> bool:
        """Whether it succeeded."""
        return self.task.outcome == "success"

    @property
    def is_seen_to_work(self) -> bool:
        """Whether it succeeded, and a success whose exit code is that of another command is printed."""
        is_hidden = _HIDES.search(QUOTED.sub("", self.task.command[:8_000])) is not None
        return self.worked and (not is_hidden or _SUCCESS.search(self.task.output[-2_000:]) is not None)


def is_same(one: Step, other: Step) -> bool:
    """Return whether two steps attempt the same: the same edit tool on the same file, or the same program on similar arguments."""
    if one.program != other.program:
        return False
    if one.edits:
        files = set(one.task.files_changed), set(other.task.files_changed)
        return not (files[0] and files[1]) or not files[0].isdisjoint(files[1])
    return one.essence == other.essence or _overlap(one.words, other.words) >= _SAME_COMMAND_OVERLAP


def is_part(one: Step, other: Step) -> bool:
    """Return whether `one` runs only some of the commands that `other` chains."""
    its, others = (
        set(map(str.strip, _CHAINED.split(_PREPARATION.sub("", step.essence)))) - {""} for step in (one, other)
    )
    return its < others


def is_by_another_program(one: Step, other: Step) -> bool:
    """Return whether `other` does the same with another program: its arguments are those of `one`."""
    if one.edits or not other.runs or CALL.match(one.command):
        return False
    its, others = (frozenset(_WORD.findall(step.command.casefold())[1:]) for step in (one, other))
    return bool(its) and its <= others | other.words and len(other.words - its) <= 3


def reasoning_after(steps: Sequence[Step], step: Step) -> str:
    """Return the agent's next statement: its interpretation of the outcome."""
    return steps[step.place + 1].task.reasoning if step.place + 1 < len(steps) else ""


def purpose_of(step: Step, then: str) -> str:
    """Return a step's purpose, if the agent stated one, before or (`then`) after it."""
    said = _DONE.sub("", step.task.reasoning[:2_000])  # the result of the preceding step
    purpose = (_DONE.search(then[:600]) if step.edits else None) or _PURPOSE.search(said)
    return purpose[1].strip() if purpose else ""


def short(command: str) -> str:
    """Return a command as a memory shows it."""
    return cut(command, MAX_COMMAND_CHARS, keep_space=True)


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    either = len(one | other)
    return len(one & other) / either if either else 0.0
