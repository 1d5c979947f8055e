"""What a run prints: figures as they come, then comparisons; or all of it as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from tests.benchmarks.figures import AIMS, COST_AIM, COSTS, MEANINGS, PEER_MEANINGS, Figure, Statistic, made_of
from tests.benchmarks.peers import PEERS
from tests.benchmarks.peers.trials import Kept


@dataclass(slots=True)
class PeerResult:
    """What was measured of memgraph or of a peer, at one size."""

    system: str
    memories: int
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def value(self, name: str) -> float | None:
        """Return a figure's value."""
        return next((figure.value for figure in self.figures if figure.figure == name), None)


@dataclass(frozen=True, slots=True)
class Trial:
    """What was kept of what was acknowledged."""

    system: str
    killed: Kept
    two_writers: Kept


class Report:
    """Keeps what was measured, and prints it unless it is to be JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._section = ""
        self.figures: list[Figure] = []
        self.peers: list[PeerResult] = []
        self.trials: list[Trial] = []
        self.failures: list[str] = []

    def say(self, line: str = "") -> None:
        """Print a line."""
        if not self._as_json:
            print(line, flush=True)

    def begin(self, machine: dict[str, Any], plan: dict[str, Any]) -> None:
        """Print what the run runs on, and what it does."""
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        self.say(f"{machine['system']}; {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB")
        self.say(f"Python {machine['python']}; {versions}")
        self.say(
            f"load {machine['load_1_min']} (1 min); {machine['filesystem']}, appending and fsyncing 1 kB there takes "
            f"{machine['append_fsync_ms_p50']} ms (p50)"
        )
        self.say("; ".join(f"{name} {_plain(value)}" for name, value in plan.items()))

    def title(self, text: str) -> None:
        """Print a heading."""
        self._section = ""
        self.say(f"\n== {text} ==")

    def measured(self, memories: int, values: dict[str, list[float]]) -> None:
        """Make figures of measurements, in the order of their meanings, and print them."""
        for name, meaning in MEANINGS.items():
            if name not in values:
                continue
            if meaning.section != self._section:
                self._section = meaning.section
                self.say(f"\n{meaning.section}")
            figures = list(made_of(name, meaning, values[name], memories=memories))
            self.figures += figures
            shown = " / ".join(short(figure.value) for figure in figures)
            how = f"{' / '.join(meaning.statistics)} of {figures[0].of}, {short(figures[0].low)} to {short(figures[0].high)}"
            self.say(f"  {meaning.what:<48}{shown:>16} {meaning.unit:<13}{how if figures[0].of > 1 else 'once'}")

    def failed(self, what: str) -> None:
        """Note that a part of the run failed."""
        self.failures.append(what)
        self.say(f"  FAILED: {what}")

    def value(self, name: str, memories: int, statistic: Statistic | None = None) -> float | None:
        """Return a figure's value, by default of its first statistic."""
        statistic = statistic or MEANINGS[name].statistics[0]
        wanted = (name, memories, statistic)
        return next((f.value for f in self.figures if (f.figure, f.memories, f.statistic) == wanted), None)

    def costs(self, sizes: Sequence[int]) -> list[dict[str, Any]]:
        """Return what each operation costs at the largest size over what it costs at the smallest."""
        small, large = sizes[0], sizes[-1]
        found = []
        for name in COSTS if large > small else ():
            at_small, at_large = self.value(name, small), self.value(name, large)
            if at_small and at_large:
                ratio = at_small / at_large if MEANINGS[name].is_rate else at_large / at_small
                found.append({"figure": name, "what": MEANINGS[name].what, "ratio": round(ratio, 3)})
        return found

    def aims(self, memories: int) -> list[dict[str, Any]]:
        """Return each aim, what was measured, and whether it is met."""
        found = []
        for aim in AIMS:
            value = self.value(aim.figure, memories, aim.statistic)
            if value is not None:
                meaning = MEANINGS[aim.figure]
                is_met = value >= aim.bound if meaning.is_rate else value <= aim.bound
                found.append(
                    {"what": meaning.what, "value": value, "aim": aim.bound, "unit": meaning.unit, "is_met": is_met}
                )
        return found

    def ratios(self) -> list[dict[str, Any]]:
        """Return memgraph's figures over each peer's."""
        found = []
        for peer in self.peers:
            own = next((o for o in self.peers if (o.system, o.memories) == ("memgraph", peer.memories)), None)
            if own is None or peer is own:
                continue
            pairs = {name: (own.value(name), peer.value(name)) for name in PEER_MEANINGS}
            ratios = {name: round(mine / theirs, 4) for name, (mine, theirs) in pairs.items() if mine and theirs}
            if ratios:
                found.append({"peer": peer.system, "memories": peer.memories, **ratios})
        return found

    def compare_sizes(self, sizes: Sequence[int]) -> None:
        """Print costs between sizes, and aims."""
        if costs := self.costs(sizes):
            self.title(f"Cost at {sizes[-1]:,} over cost at {sizes[0]:,} (aim per memory: {COST_AIM} at most)")
            for cost in costs:
                self.say(f"  {cost['what']:<48}{cost['ratio']:>16.2f} ×")
        self.title(f"Aims, at {sizes[-1]:,}")
        for aim in self.aims(sizes[-1]):
            sign = "≥" if aim["unit"].endswith("/s") else "≤"
            met = "met" if aim["is_met"] else "NOT MET"
            self.say(f"  {aim['what']:<48}{short(aim['value']):>16} {aim['unit']:<13}{sign} {short(aim['aim'])}: {met}")

    def compare_peers(self) -> None:
        """Print memgraph and its peers side by side, the ratios, and what one should know of them."""
        for memories in sorted({peer.memories for peer in self.peers}):
            there = [peer for peer in self.peers if peer.memories == memories]
            self.title(f"Side by side at {memories:,} memories")
            heads = [f"{meaning.what}, {meaning.unit}" for meaning in PEER_MEANINGS.values()]
            self._table(heads, {peer.system: [_cell(peer.value(name)) for name in PEER_MEANINGS] for peer in there})
            if ratios := [ratio for ratio in self.ratios() if ratio["memories"] == memories]:
                self.say("\n  memgraph / peer: of rates above 1 is better, of all else below 1")
                heads = [f"{meaning.what}{' (rate)' if meaning.is_rate else ''}" for meaning in PEER_MEANINGS.values()]
                self._table(heads, {r["peer"]: [_cell(r.get(name), "×") for name in PEER_MEANINGS] for r in ratios})
            for peer in there:
                for note in peer.notes:
                    self.say(f"  {peer.system}: {note}")
        if self.trials:
            self.title("Acknowledged memories that a new process found")
            heads = ["after kill -9 of the writer", "of two writers at once"]
            self._table(heads, {trial.system: [str(trial.killed), str(trial.two_writers)] for trial in self.trials})
            for trial in self.trials:
                if trial.two_writers.refused:
                    self.say(f"  {trial.system} refused a second writer: {trial.two_writers.refused}")
        self.title("How they are used")
        for name in dict.fromkeys(peer.system for peer in self.peers):
            self.say(f"  {name}: {PEERS[name].note}")

    def end(self, document: dict[str, Any], sizes: Sequence[int]) -> None:
        """Print the document, if it is to be JSON."""
        if not self._as_json:
            return
        document |= {
            "figures": [figure.as_dict() for figure in self.figures],
            "costs": self.costs(sizes),
            "aims": self.aims(sizes[-1]),
            "peers": [
                {**asdict(peer), "figures": [figure.as_dict() for figure in peer.figures]} for peer in self.peers
            ],
            "ratios": self.ratios(),
            "trials": [asdict(trial) for trial in self.trials],
            "failures": self.failures,
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))

    def _table(self, heads: Sequence[str], rows: dict[str, list[str]]) -> None:
        """Print named rows under heads that are folded to the width of their column."""
        names = max(map(len, rows))
        columns = list(zip(*rows.values(), strict=True))
        folded = [wrap(head, max(14, *map(len, column))) for head, column in zip(heads, columns, strict=True)]
        widths = [max(map(len, (*head, *column))) for head, column in zip(folded, columns, strict=True)]
        lines = [("", line) for line in zip_longest(*folded, fillvalue="")]
        for name, cells in [*lines, *rows.items()]:
            padded = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
            self.say("  ".join(["", name.ljust(names), *padded]).rstrip())


def short(value: float) -> str:
    """Return a number with about three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def _cell(value: float | None, unit: str = "") -> str:
    return "–" if value is None else short(value) + unit


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return " and ".join(_plain(one) for one in value)
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
