"""Classification of errors by their message: environment, configuration, or the agent's own mistake (seed 3). Pure."""

from __future__ import annotations

from memgraph.model.results.learning import ErrorKind
from memgraph.text import lazy_re as re

_READ_CHARS = 2_000


def _any_of(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", re.IGNORECASE)


_EXTERNAL = _any_of(
    # the network
    r"E(?:CONN(?:REFUSED|RESET|ABORTED)|NOTFOUND|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN|PIPE)",
    r"connection (?:was |has been )?(?:refused|reset|aborted|closed|timed out|error)",
    r"(?:server|peer|host|end) (?:has )?(?:unexpectedly )?(?:closed|hung up|dropped|disconnected)",
    r"socket hang up|broken pipe|rpc failed|lost (?:connection|communication)|server ?disconnected",
    r"failed to (?:connect to|download)|unable to (?:fetch|resolve host)|max retries exceeded",
    r"no such host|no route to host|unknown ?host\w*|name or service not known|network (?:error|request)",
    r"network is (?:unreachable|down)|(?:temporary failure in|could not resolve|cannot resolve) (?:name|host)\w*",
    r"tls handshake|unexpected.eof.while.reading",
    r"(?:read|request|operation|handshake|i/o|gateway|connect|connection) ?time(?:d )?-?out|time(?:d )?-?out was reached|deadline exceeded",
    r"\w{0,20}(?:Connect(?:ion(?:Reset|Refused|Aborted)?)?Error|Disconnected(?:Error)?|(?:Connect|Read)Timeout\w*)",
    # the service
    r"(?:api|pull|request)s? rate.?limit\w*|rate.?limit\w*.{0,20} (?:exceeded|reached|hit)|rate.?limited (?:by|for)|rate.?limit error",
    r"too ?many ?requests|quota (?:was |has been )?exceeded|exceeded your (?:current )?quota|Throttl\w+",
    r"(?:http|status|code|error)\W{0,3}(?:429|50[0234])|50[234]\s+(?:service|bad|gateway)",
    r"service (?:is )?(?:temporarily )?unavailable|bad gateway|internal server error",
    r"(?:is|was|currently|error:?) overloaded|overloaded_error|overloaded(?=: )|UNAVAILABLE(?=: )",
    r"\w{0,20}(?:RateLimitError|ServiceUnavailable\w*)",
)
_CONFIGURATION = _any_of(
    # files, programs, packages and their versions
    r"no such file or directory|file ?not ?found\w*|ENOENT|could not find (?:the )?file|could not find `[^`]{1,80}\.\w{2,4}`",
    r"command not found|not recognized as an internal or external command|executable not found|linker \S{1,40} not found",
    r"no module named|module ?not ?found\w*|cannot (?:find (?:module|package|-l\w+)|import name)|can't find crate|in the pkg-config search path",
    r"version (?:mismatch|conflict)|unsupported version|UnsupportedClassVersion\w*|(?:is|are) incompatible with|incompatible versions?",
    r"no matching (?:distribution|version)|could not find a version|which is incompatible|dependency conflict",
    r"requires? (?:a )?(?:different )?(?:python|node|version)\b[^.]{0,30}\d|requires \S{1,20} [><=~^]{1,2} ?\d[\d.]*",
    r"\S{1,40} or (?:greater|later|newer|higher) is required|(?:could not|unable to) resolve depend\w+|externally-managed-environment",
    # permissions and credentials
    r"permission (?:to \S{1,100} )?denied|PermissionError|EACCES|operation not permitted|access ?denied|403 forbidden",
    r"unauthori[sz]ed|(?:authentication|login) failed|unable to locate credentials|NoCredentials\w*|certificate (?:has )?expired",
    r"(?:http|code|error)\W{0,3}40[13]|status\W{0,3}40[13](?!.{0,20}\bgot\b)",
    r"(?:invalid|missing|expired|bad) (?:api.?key|credentials?|access token)|(?:invalid|expired) token(?! [^\w\s])|no (?:api.?key|credentials)",
    r"(?:role|database|user) \"[^\"]{1,60}\" does not exist",
    # settings and the machine
    r"environment variables?|EnvironmentError|(?:is|was) not (?:set|configured|installed)|input required and not supplied",
    r"missing (?:required )?(?:config\w*|setting|token|environment|key file|dependency)|Improperly\w*Configured",
    r"(?:invalid|bad|broken) config\w*|config\w* (?:error|file)|invalid workflow|unknown (?:compiler |command.line )?option",
    r"EADDRINUSE|address already in use|no space left on device|disk (?:is )?full|cannot connect to the docker daemon",
)
_MISSING_PROGRAM = re.compile(r"^(?:[\w./-]{1,40}: ){1,3}(?:\d{1,4}: )?[\w.-]{1,40}: not found$")
_SETTING = re.compile(
    r"KeyError: '[A-Z][A-Z0-9]*_[A-Z0-9_]+'|"
    r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\W{1,3}(?:is |was )?(?:missing|undefined|not (?:set|found|defined))\b|"
    r"in \"[^\"\n]{0,140}\.(?:ya?ml|toml|ini|cfg)\""
)
_EXPECTATION = re.compile(r"^(?:E\s+)?(?:AssertionError|expect(?:ed|ation)?)\b", re.IGNORECASE)
"""What a test expected is a mistake of one's own, whatever it names."""


def kind_of(error: str) -> ErrorKind:
    """Return the class of an error: network, rate limit or service; setting, file, permission or version; else one's own mistake.

    An unrecognised message counts as a mistake of one's own: that is what one can act on.
    """
    said = error[:_READ_CHARS]
    if _EXPECTATION.search(said):
        return "internal"
    if _EXTERNAL.search(said):
        return "external"
    patterns = (_CONFIGURATION, _MISSING_PROGRAM, _SETTING)
    return "configuration" if any(pattern.search(said) for pattern in patterns) else "internal"
