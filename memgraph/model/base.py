"""The pydantic bases and annotated types that every model shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from memgraph.errors import InvalidInputError
from memgraph.model.timestamps import to_iso

MAX_CONTENT_CHARS = 800
MAX_TEXT_CHARS = 8_000
MAX_NAME_CHARS = 400
MAX_ITEMS = 1_000
MAX_COUNT = 2**31 - 1
"""The index holds counts as int32."""

_MOST_PROBLEMS = 5
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` unchanged; refuse NUL and lone surrogates, which neither UTF-8 nor the engine can hold."""
    if text.isascii() and "\x00" not in text:
        return text
    if found := _UNSTORABLE.search(text):
        code = ord(found.group())
        raise ValueError(f"contains the character U+{code:04X} at position {found.start()}, which cannot be stored")
    return text


def has_credentials(address: str) -> bool:
    """Return whether a server's address contains a user name or password."""
    return "@" in address


def without_credentials(address: str) -> str:
    """Return a server's address without user name and password, for display."""
    scheme, separator, rest = address.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _without_secret(address: str) -> str:
    if has_credentials(address):
        problem = "must not contain a user name or password; remove everything up to the @"
        raise InvalidInputError(problem, field="", value=without_credentials(address))
    return address


_STORABLE = r"^[^\x00]*$"
_NOT_BLANK = r"^[^\x00]*[^\s\x00\x1c-\x1f][^\x00]*$"
"""Patterns instead of functions, because a memory has dozens of texts and the validator checks patterns without calling Python.
The validator itself refuses surrogates; `_complaint` describes the problem."""


def _floor(value: object) -> object:
    """Return a floor; a number may be written as text, as in an environment variable."""
    if value in ("auto", "off"):
        return value
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise ValueError("must be auto, off or a number from 0 to 1")
    return number


Content = Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARS, pattern=_NOT_BLANK)]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS, pattern=_STORABLE)]
Address = Annotated[Text, AfterValidator(_without_secret)]
"""Address of a server, without user name and password, because settings are shown. An error shows only the rest of it."""
Prose = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS, pattern=_NOT_BLANK)]
Name = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARS, pattern=_NOT_BLANK)]
Timestamp = Annotated[str, BeforeValidator(to_iso)]
Unit = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Floor = Annotated[Literal["auto", "off"] | Unit, BeforeValidator(_floor)]
"""A floor of retrieval: ``auto``, the calibrated one; ``off``; or a probability."""
Seconds = Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Bytes = Annotated[int, Field(ge=0)]
Limit = Annotated[int, Field(ge=0, le=MAX_COUNT, strict=True)]
QueryText = Annotated[str, AfterValidator(storable)]
Callback = Callable[..., Any] | None

T = TypeVar("T")


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # it has no public name


class _RefusingMeta(ModelMetaclass):
    """Translates errors of constructor calls. An `__init__` would also be called for every nested model."""

    def __call__(self, *args: Any, **data: Any) -> Any:
        try:
            return super().__call__(*args, **data)
        except ValidationError as error:
            raise refused(self.__name__, error) from None


class _Refusing(BaseModel, metaclass=_RefusingMeta):
    """Raises `InvalidInputError` for invalid input, never pydantic's own error."""

    if TYPE_CHECKING:

        def __init__(self, **data: Any) -> None: ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Do what pydantic does, in a quarter of the time: there are neither extra fields nor private attributes."""
        if deep:
            return super().model_copy(update=update, deep=True)
        copied, update, put = object.__new__(type(self)), update or {}, object.__setattr__
        put(copied, "__dict__", {**self.__dict__, **update})
        put(copied, "__pydantic_fields_set__", self.__pydantic_fields_set__ | update.keys())
        put(copied, "__pydantic_extra__", None)
        put(copied, "__pydantic_private__", None)
        return copied

    @classmethod
    def parse(cls, data: object) -> Self:
        """Validate a mapping or pass an instance through.

        Raises
        ------
        InvalidInputError
            Input is invalid; the error names the first refused field and its value.
        """
        if isinstance(data, cls):
            return data
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise refused(cls.__name__, error) from None

    @classmethod
    def of_row(cls, row: Mapping[str, Any], **others: Any) -> Self:
        """Build an instance from the fields that it has in common with a stored row, and from others. Raises as `parse` does."""
        return cls.parse({name: row[name] for name in cls.model_fields if name in row} | others)


class Model(_Refusing):
    """Base of models that users build and receive: frozen, unknown fields refused, camelCase accepted."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
        defer_build=True,  # schemas are built at first use, because most commands need few
    )


class Strict(_Refusing):
    """Base of models that the journal stores: no coercion, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


def checked(kind: Any, value: object, field: str) -> Any:
    """Validate an argument against the annotated type `kind`, or raise an `InvalidInputError` that names the argument and the value."""
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        found = refused("", error)
        name = f"{field}.{found.field}" if found.field else field
        raise InvalidInputError(found.problem, field=name, value=found.value) from None


def checked_list(kind: type[T], values: object, field: str) -> list[T]:
    """Return an argument as a list of instances of a class, or raise an `InvalidInputError`."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInputError(f"must be a list of {kind.__name__}", field=field, value=values)
    found = list(values)
    for place, value in enumerate(found):
        if not isinstance(value, kind):
            raise InvalidInputError(f"must be a {kind.__name__}", field=f"{field}.{place}", value=value)
    return found


@lru_cache(maxsize=64)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def refused(model: str, error: ValidationError) -> InvalidInputError:
    """Convert pydantic's first error to memgraph's, with field and value."""
    errors = error.errors(include_url=False)
    first = next((found for found in errors if found["type"] == "invalid_key"), errors[0])
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidInputError):  # raised by a nested model or a validator, with its field
        path = ".".join(str(part) for part in first["loc"])
        field = ".".join(filter(None, (path, cause.field)))
        return InvalidInputError(cause.problem, field=field, value=cause.value)
    others = [found for found in errors if found is not first]
    shown = [f"{'.'.join(map(str, one['loc'])) or model}: {_complaint(one)}" for one in others[: _MOST_PROBLEMS - 1]]
    left = len(others) - len(shown)
    problem = "; ".join(
        [_complaint(first), *shown, *([f"{left} more {'error' if left == 1 else 'errors'}"] if left else [])]
    )
    place = first["loc"]
    if first["type"] == "invalid_key":  # the last part of its location is the key itself
        place, problem = place[:-1] or ("keys",), "must have strings as its keys"
    value = first.get("input") if not others else ...
    return InvalidInputError(problem, field=".".join(map(str, place)) or model, value=value)


_IN_PYDANTICS_WORDS = re.compile(r"^(?:Input|String|List|Value|Dictionary|Tuple) should")


def _complaint(found: Any) -> str:
    """Return a message for the problem; for a text, name the character."""
    if found["type"] in {"string_pattern_mismatch", "string_unicode"} and isinstance(found.get("input"), str):
        text: str = found["input"]
        try:
            storable(text)
        except ValueError as error:
            return str(error)
        if not text.strip():
            return "must not be empty"
    return _IN_PYDANTICS_WORDS.sub(
        "must", str(found["msg"]).removeprefix("Value error, ").replace(" after validation", "")
    )
