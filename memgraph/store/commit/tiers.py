"""The privacy tiers of memories that are written: by domain and texts, with a notice where a text or a doubtful domain decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgraph.model.memory import AgentMemory
from memgraph.model.results.sleep import MADE_FROM_OTHERS
from memgraph.privacy.tiers import TEXT_FIELDS, Inferred, M, inferred, strictest, text_of


class Tiers:
    """Gives memories their tiers.

    Parameters
    ----------
    notice : callable
        Called with each notice for the user.
    """

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice = notice

    def classified(self, memories: Sequence[AgentMemory], *, are_one: bool = False) -> list[AgentMemory]:
        """Return memories with their tiers, unless they were given one; with `are_one`, the texts of all decide for each."""
        whole = "\n".join(map(text_of, memories)) if are_one else None
        found = [
            memory
            if "privacy_tier" in memory.model_fields_set
            else self.raised(memory, inferred(memory.domain, text_of(memory) if whole is None else whole))
            for memory in memories
        ]
        for memory in found:
            self._tell_if_nobodys(memory)
        return found

    def raised(self, memory: M, found: Inferred | None = None) -> M:
        """Return a memory with a stricter tier, and the domain if it has none, if its domain or texts call for it."""
        found = inferred(memory.domain, text_of(memory)) if found is None else found
        if found.notice:
            self._notice(f"a memory was {found.notice}")
        if strictest(found.tier, memory.privacy_tier) == memory.privacy_tier:
            return memory
        return memory.model_copy(update={"privacy_tier": found.tier, "domain": memory.domain or found.domain})

    def changed(self, old: AgentMemory, new: M) -> M:
        """Return a changed memory with a stricter tier, if its new domain or its new texts call for it."""
        domain = new.domain if new.domain != old.domain else None
        texts = [name for name in TEXT_FIELDS if getattr(new, name, None) != getattr(old, name, None)]
        return self.raised(new, inferred(domain, text_of(new, texts)))

    def stated(self, old: AgentMemory, new: M) -> M:
        """Return a changed memory whose tier was stated."""
        if (old.privacy_tier, old.domain) != (new.privacy_tier, new.domain):
            self._tell_if_nobodys(new)
        return new

    def _tell_if_nobodys(self, memory: AgentMemory) -> None:
        if memory.privacy_tier == "private" and memory.domain is None and memory.source not in MADE_FROM_OTHERS:
            self._notice(
                "a private memory has no domain, so no agent may have it; `memgraph edit ID --domain NAME` gives it one"
            )
