"""A message without what was pasted into it: code, logs, prompts, tables, stack traces."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from memgraph.text import lazy_re as re

_FENCED = re.compile(r"```[^`]{0,8000}(?:```|$)")
_PASTED = re.compile(
    r"\s*(?:[>$%|│➜❯λ●■✓✔✗✘✅❌×⎿─═╭╰├└┌⏭♻✨☁💡👀]|[+-]{2,}\S?|={2,}|[#%]\s*$)|.{0,60}\bgit:\([^)\n]{1,60}\)|\[[^\]\n]{0,80}[~/][^\]\n]{0,200}\]|"
    r"\w{1,40}@[\w.-]{1,60}[ :][^\n]{0,80}[%$#] |\s*\[?(?:\d{4}-\d\d-\d\d[T ]?\d|\d{1,2}:\d\d:\d\d\b)|\s*\d{1,6}\.\d{2,3}\s|\s*(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|TRACE)\b|"
    r"\s*\[[A-Za-z][\w. -]{1,30}\](?:\s|$)(?!\S+ #)|\s*(?:npm|yarn|pnpm) (?:ERR!|WARN|error|warn|notice)|\s*(?:at \S{1,200}(?:$| [(<\[])|at async |File \"|Traceback |caused by:)|"
    r"[\w.]{1,80}(?:Error|Exception|Warning)(?: \[?\w+\]?)?: |\s*(?:\S{1,200}[:(]\d{1,6}[:,]\d{1,6}[):]?|\S{1,200}\.\w{1,5}:\d{1,6})(?:\s|$)|@?[\w/-]{1,60}[:#][\w-]{1,40}:|\(\w{1,40}:\d+\)|"
    r"(?:def|class|import|return|export|const|let|var|func|package) \w{1,60}\s?[(:={.]|from \w{1,60} import |\s{0,40}\d{1,6}\s?[│|→]|\s{4,}(?![-*•]\s|\d{1,2}[.)]\s|[a-z]\)\s)\S|\s{2,}\S+\s{2,}\S|"
    r"[^\n]{0,400}(?:\S\s{3,}\S|\serror [A-Z]{1,4}\d{3,6}:|[)\]}'\"]\s?;$|[{}]$|\.{6,}|</\w+>)|\s*(?:\S{1,20}=\S{1,80}\s){2}"
)
"""Lines of the shapes that programs print and people do not write."""
_PROMPT = re.compile(
    r"\s*[➜❯λ]\s|.{0,60}\bgit:\([^)\n]{1,60}\)|\[[^\]\n]{0,80}[~/][^\]\n]{0,200}\]\s\S|\w{1,40}@[\w.-]{1,60}[ :][^\n]{0,80}[%$#] "
)
_ADDRESSES = re.compile(r"\b(?:i|i'm|we|you|my|our|your|let'?s|please|pls)\b", re.IGNORECASE)
_HEADING = re.compile(r"#{1,4} \S")
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s")
_LEAST_HEADINGS = 2
_REPEATED_CHARS = 40
"""Lines at least this long that occur again were printed by a program."""
_MOST_LINES_BETWEEN = 4
"""So many lines that look like prose may lie within one pasted output."""


def own_words(message: str) -> str:
    """Return a message without pasted lines, what lies between two of them, and what nobody is addressed by after a prompt; linear in its length."""
    lines = _FENCED.sub("\n\n", message).split("\n")
    times = Counter(line.strip() for line in lines if len(line) >= _REPEATED_CHARS)
    is_document = sum(1 for line in lines if _HEADING.match(line)) >= _LEAST_HEADINGS
    pasted = [
        place
        for place, line in enumerate(lines)
        if (line.strip() and _PASTED.match(line[:1_000]))
        or times[line.strip()] > 1
        or (is_document and _ITEM.match(line))
    ]
    dropped = set(pasted)
    for one, other in pairwise(pasted):
        between = range(one + 1, other)
        if sum(1 for place in between if lines[place].strip()) <= _MOST_LINES_BETWEEN:
            dropped.update(between)
    prompts = [place for place in pasted if _PROMPT.match(lines[place][:1_000])]
    kept = ["" if place in dropped else line for place, line in enumerate(lines)]
    if not prompts:
        return "\n".join(kept)
    before, after = ("\n".join(part).split("\n\n") for part in (kept[: prompts[0]], kept[prompts[0] :]))
    return "\n\n".join([*before, *(part for part in after if _ADDRESSES.search(part))])
