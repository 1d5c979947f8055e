"""The built-in annotator: named entities, subject, suggested tags and failure fingerprint of a memory.

A text is split into tokens once, and each token is truncated and judged on its own, so hostile input costs linear time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from memgraph.extraction.components import components_of, is_sha
from memgraph.extraction.error_text import error_lines, error_type, failure_fingerprint
from memgraph.extraction.statements import is_instruction, steps_in
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory, Entity, EntityKind
from memgraph.ports import Annotation, lacks_entities
from memgraph.text import lazy_re as re
from memgraph.text.attempts import stated

MAX_ENTITIES = 16
_MAX_ABOUT_FILES = 3
_MAX_TEXT_CHARS = 8_000
_MAX_TOKEN_CHARS = 200
_MAX_TAGS = 6
_COMMIT_CHARS = 12

_TOKEN = re.compile(r"https?://[^\s<>\"'`()\[\]{}“”]+|[^\s,;|<>()\[\]{}\"“”'‘’`=]+")
_BACKTICKED = re.compile(r"`([^`\n]{1,100})`")
_CODE_SOURCES = frozenset({"git", "build log"})
_PATH = re.compile(r"[\w.@~+-]{1,100}(?:/[\w.@+-]{1,100}){1,20}/?")
_SUFFIXES = frozenset(
    str.split(
        "py pyi js jsx ts tsx mjs c h cc cpp hpp rs go java kt rb php cs swift scala lua sh bash zsh ps1 sql cypher json jsonl yml yaml toml "
        "ini cfg conf xml htm html css scss md rst txt csv tsv ipynb lock log env proto tf dockerfile pdf"
    )
)
_ERRORS = ("Error", "Exception", "Fault", "Warning", "Interrupt")
_PACKAGE = re.compile(r"@?[a-z][a-z0-9]{0,40}(?:[-_./][a-z0-9]{1,40}){0,5}")
_OF_PACKAGES = re.compile(
    r"\b(?:install\w*|depend\w*|packages?|librar(?:y|ies)|module|needs|requires|upgrad\w*|pip|npm|yarn|pnpm|cargo|gem|brew)\b",
    re.IGNORECASE,
)
"""Words beside the name of a package; without them a word in backticks is one of the code."""
_NOBODY = frozenset({"tests", "unknown"})
"""What readers call an agent that their source does not name."""
_DOMAINS = frozenset("com org net io dev edu gov co ai uk de fr".split())
_WORD = re.compile(r"[^\W\d_](?:[\w’'-]{0,60}\w)?\.?|[.!?:;\n]")
_BRANDS = frozenset(
    str.split(
        "github gitlab javascript typescript youtube linkedin iphone ipad ebay macos ios latex paypal whatsapp facetime "
        "mcdonald mcdonalds powerpoint playstation bigquery"
    )
)
_ABBREVIATIONS = frozenset(str.split("e.g i.e a.m p.m u.s u.k etc.and"))
_STARTERS = frozenset(
    str.split(
        "a an the this that these those in on at for from with by to of and but or if when while after before since until as it its he "
        "she they we i you his her their our my your there here what who which how why is are was were be been has have had do did "
        "does not no yes also then so now today yesterday tomorrow monday tuesday wednesday thursday friday saturday sunday january "
        "february march april may june july august september october november december new all some many most each every both "
        "another such let let's i'm i've i'd i'll you're we're they're it's that's hi hey hello thanks thank wow oh ok okay yeah sure "
        "great good nice well please fix decision change removal safeguard build steps context instruction user why release search find look check "
        "use used using try should would could will may might can must add make take open run read write see note lesson failed solved trial"
    )
)
_CONNECTORS = frozenset(str.split("of the de la le du van von der den di da del al"))


class RuleAnnotator:
    """Annotates entities, suggested tags and a failure fingerprint by rules. Deterministic; linear in the text.

    Entities are files, dotted and compound identifiers, packages in backticks, error classes, issues, commits, URLs,
    people listed as involved in the memory, and, outside of code, capitalised names of several words. The memory's
    subject comes first (the entity in its title, otherwise up to three of its files), then the rest in order of the
    text; at most 16.
    """

    def annotate(self, memory: AgentMemory) -> Annotation:
        """Return the annotation of `memory`; entities that it brings along are not extended, unless all are issues or releases."""
        files: list[str] = getattr(memory, "files_involved", [])
        return Annotation(
            entities=_entities(memory, files) if lacks_entities(memory) else (),
            tags=() if memory.tags else tuple(_tags(memory, files)),
            failure_fingerprint=_fingerprint(memory),
        )


def _entities(memory: AgentMemory, files: list[str]) -> tuple[Entity, ...]:
    found: dict[tuple[str, str], Entity] = {}
    commit = getattr(memory, "git_commit", None)
    named = [*_about(memory, files), *_in_text(memory)]
    if commit and is_sha(commit):
        named.append(Entity(name=commit[:_COMMIT_CHARS], kind="commit"))
    if release := getattr(memory, "release", None):
        named.append(Entity(name=release, kind="commit"))
    named += [Entity(name=file[:400], kind="file") for file in files[:MAX_ENTITIES] if file.strip()]
    paths = {canonical_name(file) for file in files}
    bases = Counter(path.rsplit("/", 1)[-1] for path in paths)
    for entity in named:
        name = canonical_name(entity.name)
        if entity.kind == "file" and bases[name] == 1 and name not in paths:
            continue  # the name of one of its files: the path is used instead
        found.setdefault((entity.kind, name), entity)
    brought = {(one.kind, canonical_name(one.name)) for one in memory.entities}
    others = [entity for key, entity in found.items() if key not in brought]
    return tuple(others[: max(0, MAX_ENTITIES - len(brought))])


def _about(memory: AgentMemory, files: list[str]) -> Iterator[Entity]:
    title = " ".join((memory.title or "")[:_MAX_TEXT_CHARS].split())
    if title and len(title) <= 120:
        kind = _kind_of(title, in_backticks=False) if " " not in title else None
        yield Entity(name=title, kind=kind or "concept", about=True)
        return
    yield from (Entity(name=file[:400], kind="file", about=True) for file in files[:_MAX_ABOUT_FILES] if file.strip())


def _in_text(memory: AgentMemory) -> Iterator[Entity]:
    text = f"{memory.content}\n{(memory.title or '')[:_MAX_TEXT_CHARS]}"
    hits: list[tuple[int, Entity]] = []
    for found in _TOKEN.finditer(text):
        # a longer token is hostile or data, not a name
        if found.end() - found.start() > _MAX_TOKEN_CHARS:
            continue
        token = found.group().rstrip(".:!?*…—").lstrip("*—-")
        if kind := _kind_of(token, in_backticks=False):
            hits.append((found.start(), _entity(token, kind)))
    for found in _BACKTICKED.finditer(text):
        token = found[1].strip().removesuffix("()")
        beside = _OF_PACKAGES.search(text, max(0, found.start() - 60), found.end() + 12)
        if kind := _kind_of(token, in_backticks=True, is_package=beside is not None):
            hits.append((found.start(), _entity(token, kind)))
    for name in dict.fromkeys([*memory.agents_involved[:100], *([memory.speaker] if memory.speaker else [])]):
        match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) if name not in _NOBODY else None
        hits += [(match.start(), Entity(name=name, kind="person"))] if match else []
    if memory.source not in _CODE_SOURCES:
        people = {canonical_name(name) for name in [*memory.agents_involved, memory.speaker or ""]}
        hits += [
            (at, Entity(name=name, kind="concept")) for at, name in _names(text) if canonical_name(name) not in people
        ]
    hits.sort(key=lambda hit: hit[0])
    for _, entity in hits:
        yield entity


def _entity(token: str, kind: EntityKind) -> Entity:
    if kind == "commit":
        token = token[:_COMMIT_CHARS]
    elif kind == "symbol":
        token = token.removesuffix("()")
    return Entity(name=token[:400], kind=kind)


def _kind_of(token: str, *, in_backticks: bool, is_package: bool = False) -> EntityKind | None:
    """Return the kind of entity that a single token names, or None for a common word."""
    if not token or len(token) > _MAX_TOKEN_CHARS:
        return None
    if not in_backticks and token.isalpha() and token[1:].islower():
        return None  # most words are plain and need no pattern
    if token.startswith(("http://", "https://")):
        return "url"
    place, mark, number = token.rpartition("#")
    if number.isdecimal() and mark and (not place or place.count("/") == 1):
        return "issue"
    if token.startswith("GH-") and token[3:].isdecimal():
        return "issue"
    if is_sha(token):
        return "commit" if not token.isdecimal() and not token.isalpha() else None
    if _is_file_name(token):
        return "file"
    if _PATH.fullmatch(token) and (_is_file_name(token.rsplit("/", 1)[-1]) or token.count("/") > 1 or "_" in token):
        return "file"
    parts = token.split(".")
    if (
        parts[-1][:1].isupper()
        and parts[-1].endswith(_ERRORS)
        and parts[-1] not in _ERRORS
        and parts[-1].isidentifier()
    ):
        return "error"
    folded = token.casefold()
    if folded in _BRANDS or folded in _ABBREVIATIONS:
        return None
    if parts[-1].casefold() in _DOMAINS and len(parts) == 2 + folded.startswith("www."):
        return None
    if 1 < len(parts) < 10 and all(len(part) > 1 and _is_identifier(part) for part in parts):
        return "symbol"
    letters = [char for char in token if not char.isdecimal()]
    has_hump = any(one.islower() and other.isupper() for one, other in pairwise(letters))
    if len(token) > 3 and _is_identifier(token) and ("_" in token.strip("_") or has_hump):
        return "symbol"
    if in_backticks and (is_package or token[0] == "@") and len(token) > 1 and _PACKAGE.fullmatch(token):
        return "package"
    return "symbol" if in_backticks and len(token) > 3 and _is_identifier(token) else None


def _is_identifier(token: str) -> bool:
    return token.isidentifier() and token[0].isascii()


def _is_file_name(token: str) -> bool:
    stem, _, suffix = token.rpartition(".")
    return suffix in _SUFFIXES and stem != "" and f"_{stem}".replace("-", "_").replace(".", "_").isidentifier()


def _names(text: str) -> Iterator[tuple[int, str]]:
    """Yield (position, name) of capitalised names of at least two words."""
    run: list[re.Match[str]] = []
    pending: list[re.Match[str]] = []
    for match in [*_WORD.finditer(text), None]:
        word = match.group() if match else ""
        adjacent = bool(run) and match is not None and text[(pending or run)[-1].end() : match.start()] == " "
        if match and word[0].isupper() and (adjacent or not run) and word.strip(".").casefold() not in _STARTERS:
            run += [*pending, match]
            pending = []
            if word.endswith(".") and len(word) > 2:  # not an initial: the sentence ends here
                yield from _named(run)
                run = []
        elif adjacent and word in _CONNECTORS and len(pending) < 2 and match:
            pending.append(match)
        else:
            yield from _named(run)
            is_capital = match is not None and word[0].isupper() and word.strip(".").casefold() not in _STARTERS
            run, pending = ([match] if match and is_capital else []), []
    yield from _named(run)


def _named(run: list[re.Match[str]]) -> Iterator[tuple[int, str]]:
    if 2 <= len(run) <= 8:
        yield (
            run[0].start(),
            " ".join(match.group() for match in run).removesuffix(".").removesuffix("'s").removesuffix("’s"),
        )


def _tags(memory: AgentMemory, files: list[str]) -> list[str]:
    """Suggest tags: the kind of memory, the error it names, the components of its files."""
    text = stated(memory.content)
    kinds: list[str] = []
    if memory.outcome == "negative":
        kinds.append("failure")
    if memory.type == "procedural" or steps_in(text):
        kinds.append("procedure")
    elif memory.type == "semantic" and is_instruction(text):
        kinds.append("instruction")
    if kind := error_type(text):
        kinds.append(kind.casefold())
    return [*dict.fromkeys([*kinds, *components_of(files)])][:_MAX_TAGS]


def _fingerprint(memory: AgentMemory) -> str | None:
    if memory.outcome != "negative":
        return None
    met = getattr(memory, "errors_encountered", [])
    if met:
        return failure_fingerprint(met[0].message)
    lines = error_lines(memory.content, limit=1)
    return failure_fingerprint(lines[0] if lines else memory.content)
