"""The sentences of a message that are the user's own: not marked, quoted, pasted, attributed or refused. In doubt a sentence is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise

from memgraph.extraction.rules.user import patterns
from memgraph.extraction.statements import sentences
from memgraph.text import lazy_re as re

_ASIDE = "\ufffc" * 3
"""Stands for what was set aside; long enough for a sentence of its own."""
_JOINED = "\u2060"
"""Stands for white space in a quotation: no sentence ends there."""
_FENCED = re.compile(r"(```|~~~|'{3}|\"{3}).{0,8000}?(?:\1|\Z)|<!--.{0,8000}?(?:-->|\Z)", re.DOTALL)
_ELEMENT = re.compile(
    r"<([A-Za-z][\w:.-]{0,40})(?:\s[^<>]{0,400})?>(?!\W{0,3}(?:[\w-]+\W{0,3}){0,3}</\1).{0,8000}?(?:</\1\s{0,3}>|\Z)",
    re.DOTALL,
)
"""An element with its content, unless that is a word or two."""
_PASTED = re.compile(
    r"\s*(?:[-*]?\s?\[[ xX]\]\s|/[/*]|[$%|│➜❯λ●■✓✔✗✘✅❌×⎿─═╭╰├└┌⏭♻✨☁💡👀]|[+-]{2,}\S?|={2,}|[#%]\s*$)|.{0,60}\bgit:\([^)\n]{1,60}\)|\[[^\]\n]{0,80}[~/][^\]\n]{0,200}\]|"
    r"\w{1,40}@[\w.-]{1,60}[ :][^\n]{0,80}[%$#] |\s*\[?(?:\d{4}-\d\d-\d\d[T ]?\d|[(\[]?\d{1,2}:\d\d\b|[A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d)|\s*\d{1,6}\.\d{2,3}\s|\s*(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|TRACE)\b|"
    r"\s*\[[A-Za-z][\w. -]{1,30}\](?:\s|$)(?!\S+ #)|\s*(?:npm|yarn|pnpm) (?:ERR!|WARN|error|warn|notice)|\s*(?:at \S{1,200}(?:$| [(<\[])|at async |File \"|Traceback |caused by:)|"
    r"[\w.]{1,80}(?:Error|Exception|Warning)(?: \[?\w+\]?)?: |\s*(?:\S{1,200}[:(]\d{1,6}[:,]\d{1,6}[):]?|\S{1,200}\.\w{1,5}:\d{1,6})(?:\s|$)|@?[\w/-]{1,60}[:#][\w-]{1,40}:|\(\w{1,40}:\d+\)|"
    r"(?:def|class|import|return|export|const|let|var|func|package) \w{1,60}\s?[(:={.]|from \w{1,60} import |\s{0,40}\d{1,6}\s?[│|→]|\s{4,}(?![-*•]\s|\d{1,2}[.)]\s|[a-z]\)\s)\S|\s{2,}\S+\s{2,}\S|"
    r"[^\n]{0,400}(?:\S\s{3,}\S|\serror [A-Z]{1,4}\d{3,6}:|[)\]}'\"]\s?;$|[{}]$|\.{6,}|</\w+>)|\s*(?:\S{1,20}=\S{1,80}\s){2}"
)
"""Lines of the shapes that programs print and people do not write."""
_PROMPT = re.compile(
    r"\s*[➜❯λ]\s|.{0,60}\bgit:\([^)\n]{1,60}\)|\[[^\]\n]{0,80}[~/][^\]\n]{0,200}\]\s\S|\w{1,40}@[\w.-]{1,60}[ :][^\n]{0,80}[%$#] "
)
_REPEATED_CHARS = 40
"""Lines at least this long that occur again were printed by a program."""
_MOST_LINES_BETWEEN = 4
"""So many lines that look like prose may lie within one pasted output."""
_DOCUMENT = re.compile(
    r"\s{0,3}(?:#{1,6}\s+\S|[-=_*~]{3,}|[A-Z]{2,}(?: [A-Z]{2,})+\W*$)|(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|Return-Path):\s|[^\n]{1,200}\n\s{0,3}(?:={3,}|-{3,})\s*$"
)
"""What begins a document that lasts to the end: a heading, a rule, the header of a mail."""
_FIELDS = re.compile(r"\s{0,8}(?:-\s)?[\w.-]{1,40}\s?[:=](?:\s[^\n]*)?\n\s{0,8}(?:-\s)?[\w.-]{1,40}\s?[:=](?:\s|$)")
_QUOTES = re.compile(
    r"\"[^\"\n]{1,600}\"|`(?:[^`\s]+[ ]){3,60}[^`\s]+`|[“„][^”“\n]{1,600}[”“]|[«‹][^»›\n]{1,600}[»›]|「[^」\n]{1,600}」|‘[^’\n]{1,600}’(?!\w)|(?<![\w'])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)){1,600}(?<=\S)'(?![\w'])"
)
_TEXT = r"(?:paragraphs?|comments?|texts?|messages?|e-?mails?|prompts?|sentences?|wiki|readme|articles?|answers?|tickets?|snippets?|quotes?|posts?|threads?|reviews?|notes?|letters?|docs?|documents?|sto(?:ry|ries)|guidelines|transcripts?|logs?|output)"
_SAYS = (
    r"(?:says|said|(?<!stop )saying|tells|told|writes|wrote|states|stated|asks|asked|claims|claimed|suggests|suggested|recommends|recommended|advises|advised|insists|insisted|argues|argued|mentions|mentioned|"
    r"warns|warned|instructs|instructed|demands|demanded|replies|replied|answered|responded|commented|proposes|proposed|complains?|complained|thinks|believes|reminds|reminded|quotes|quoted|wants (?:us|me|you|everyone|them) to)"
)
_OF_OWN = re.compile(
    rf"\b(?:i|we)(?:['’]ve|['’]d|\s(?:have|had))?(?:\s(?!was\b|were\b|am\b|been\b|got\b)\w+)?\s{_SAYS}\b|\byou(?:['’]re|\sare|\swere|\shave\sbeen)\s(?:\w+\s)?{_SAYS}\b|"
    rf"\b(?:if|when|whenever|unless|until|once|before|after|what|whatever|whoever|anyone|everyone|nobody|without)\s(?:[^\s,]+\s){{0,5}}?{_SAYS}\b",
    re.IGNORECASE,
)
"""Where the user says something, or where it depends on what somebody says."""
_ATTRIBUTED = re.compile(
    rf"\b{_SAYS}\b|\w+s\s(?:say|claim|suggest|recommend|insist|advise|warn)\b(?!\s(?:why|what|how)\b)|\bthey\s(?:say|claim|want|insist|suggest|recommend|tell)\b|"
    r"\b(?:i|we)\s(?:\w+\s)?(?:read|heard|saw|found)\s(?:\w+\s){0,2}that\b|\b(?:dis)?agree\b|^from\s(?!now\b|here\b|\w+\son\b)|\b(?:according\sto|as\sper|in\sthe\swords\sof|quoting|citing)\s(?!our\b|my\b)|^(?:per|via)\s(?!our\b|my\b)\S|"
    r"(?:\b(?:his|her|their)|(?<!\bour )\b(?!(?:project|repo|team|company|house)\b)\w+['’]s)\s(?:\w+\s){0,2}?(?:rule|advice|opinion|view|motto|policy|preference|suggestion|request|instruction|guideline|demand|idea|words)s?\b",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"^(?:please |also |and |just |so |always |quick |short )*(?:(?:remember|keep in mind|bear in mind|note|be aware|follow|observe|respect|stick to|from now on|going forward|from here on|in general|by default|always|as a rule|whenever|also|please|ps|p\.s|btw|"
    r"fyi|nb|important|warning|rules?|styles?|preferences?|conventions?|constraints?|requirements?)\b|(?:for|in|on|when|if|before|after|while|regarding|about|as for)\s(?:this|our|my|all|any|every|each|new|future|you|we|i|it|the (?:future|record)|\w+ing|\w+s|\w+ \w+s)\b)|"
    r"\bhow (?:we|i)\s|\bmake (?:it|this|that) a (?:habit|rule)\b|\b(?:i|we)\s(?:\w+\s)?(?:told you|said|mentioned|asked you)\b|\b(?:my|our|these|some|few|couple of|several|one|two|three|four|five|six|another|\d)\s(?:\w+\s){0,3}?(?:rule|convention|preference|constraint|requirement|guideline|principle|remark|polic(?:y|ie)|thing|point|note|reminder|request|decision|wish)(?:e?s)?\b",
    re.IGNORECASE,
)
"""What stands before words of the user's own and a colon."""
_COLON = re.compile(r":[*_]{0,2}\s+|\s(?:→|[-=]>)\s|\s[-–—]\s(?=(?i:always|never|you (?:must|should))\b)")
_SHOWS = re.compile(
    rf"(?:\b(?:this|these)\b|\b(?:here(?:'s|’s| is| are)|found|got|received|copied|pasted|attached)\b.{{0,40}})(?:\s[\w'’-]+){{0,3}}?\s{_TEXT}\b|\b{_SAYS}\W*$|:[\s*_]*$|\bthe following\b|\bbelow\W*$",
    re.IGNORECASE,
)
"""A sentence that shows a text: what follows is that text."""


def spoken(message: str) -> list[str]:
    """Return the sentences that are the user's own, and "" where something was set aside; linear in the length of the message."""
    found: list[str] = []
    is_shown = False
    for paragraph in re.split(r"\n{2,}", _own_text(message)):
        for part in _own_sentences(paragraph):
            is_aside = _ASIDE in part
            if is_shown and not is_aside:
                return [*found, ""]
            found.append("" if is_aside else part.replace(_JOINED, " "))
            is_shown = _SHOWS.search(part) is not None and not _introduces(part.rstrip(" *_:"))
    return found


def _own_text(message: str) -> str:
    text = message.replace("\r\n", "\n").replace("**", "")
    for pattern in (_FENCED, _ELEMENT):
        text = pattern.sub(f"\n{_ASIDE}\n", text)
    text = _QUOTES.sub(lambda match: re.sub(r"\s", _JOINED, match[0]), text)
    return "\n".join(_own_lines(text.split("\n")))


def _own_lines(lines: list[str]) -> list[str]:
    """Return the lines with a mark instead of those that are pasted, quoted as a block, of another speaker, or introduced by a colon."""
    times = Counter(line.strip() for line in lines if len(line) >= _REPEATED_CHARS)
    is_hunk = any(line[:1] == "+" and line[1:2].strip() for line in lines)
    pasted = {
        place
        for place, line in enumerate(lines)
        if line.strip() and (_PASTED.match(line[:1_000]) or times[line.strip()] > 1)
    }
    for one, other in pairwise(sorted(pasted)):
        between = range(one + 1, other)
        if sum(1 for place in between if lines[place].strip()) <= _MOST_LINES_BETWEEN:
            pasted.update(between)
    kept, until, is_shell = [], "", False
    for place, line in enumerate(lines):
        two = "\n".join(lines[place : place + 2])
        is_shell = is_shell or _PROMPT.match(line[:1_000]) is not None
        is_pasted = is_shell or place in pasted or _ASIDE in line or (is_hunk and line[:1] in "+-@\\ ")
        if not line.strip() or until == "end":
            until = "" if until == "blank" else until
        elif _DOCUMENT.match(two) and not is_hunk:
            until = "end"
        elif line.lstrip()[:1] == ">" or (_FIELDS.match(two) and not is_pasted):
            until = "blank"
        kept.append(
            f"\n{_ASIDE}\n" if (until and line.strip()) or is_pasted else line + "\n" * line.rstrip(" *_").endswith(":")
        )
    return kept


def _own_sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph without those that are attributed, and without what a colon introduces that is not the user's."""
    for sentence in chain.from_iterable(map(patterns.LOWER_CASE_SENTENCE.split, sentences(paragraph))):
        bare = _QUOTES.sub(_ASIDE, sentence)
        said, *introduced = _COLON.split(patterns.OPENER.sub("", bare).strip(), maxsplit=1)
        is_own = not introduced or _introduces(said) or bare.casefold().startswith(("no,", "no.", "no "))
        if _is_attributed(said if introduced else bare) or not bare.strip(f"{_ASIDE} .!?,"):
            yield _ASIDE + sentence
            is_own = not introduced
        else:
            yield sentence if is_own else said
        if not is_own and introduced[0].strip(f"{_ASIDE} .!?,"):
            yield _ASIDE
            return


def _is_attributed(text: str) -> bool:
    return _ATTRIBUTED.search(_OF_OWN.sub("", text)) is not None


def _introduces(text: str) -> bool:
    """Return whether what stands before a colon introduces the user's own words; in doubt it does not."""
    if _is_attributed(text):
        return False
    return patterns.MARKED.match(f"{text}:") is not None or _INTRODUCES.search(text) is not None
