"""Whether two statements exclude each other, judged by a language model."""

from __future__ import annotations

from typing import Any, get_args

from memgraph.extraction.llm.asking import answer
from memgraph.extraction.llm.prompt import DATA, fenced
from memgraph.ports import Judgement, LanguageModel

_JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
_SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": list(_JUDGEMENTS)}},
    "required": ["verdict"],
    "additionalProperties": False,
}
_TASK = """\
Two statements were remembered about one software project, the earlier one first. What are they to each other?
- "compatible": both can be true, also because they speak of different things, places or cases
- "replaces": the later one describes a later state of the same thing
- "contradicts": they cannot both be true of the same thing
- "unsure": the two texts do not show it

Reply with JSON: {{"verdict": ...}}.

{data}"""


class ModelJudge:
    """Asks a language model. A `Judge`.

    Parameters
    ----------
    model : LanguageModel
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def judge(self, one: str, other: str) -> Judgement:
        """Return what two statements are to each other; an unusable reply is asked for once more.

        Raises
        ------
        ProviderError
            The model fails, or both replies are unusable.
        BudgetSpentError
            The budget is spent.
        """
        fence, record = fenced(f"Earlier: {' '.join(one.split())}\nLater: {' '.join(other.split())}")
        messages = [
            {"role": "system", "content": _TASK.format(data=DATA.format(fence=fence))},
            {"role": "user", "content": record},
        ]
        return answer(self._model, messages, _SCHEMA, _verdict)


def _verdict(reply: Any) -> Judgement:
    said = reply.get("verdict") if isinstance(reply, dict) else None
    for judgement in _JUDGEMENTS:
        if said == judgement:
            return judgement
    raise ValueError(f"the verdict must be one of {', '.join(_JUDGEMENTS)}")
