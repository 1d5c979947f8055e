"""The pydantic bases and annotated types that every model shares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
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

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` unchanged; refuse NUL and lone surrogates, which neither UTF-8 nor the engine can hold."""
    if text.isascii() and "\x00" not in text:
        return text
    if found := _UNSTORABLE.search(text):
        code = ord(found.group())
        raise ValueError(f"holds the character U+{code:04X} at position {found.start()}, which cannot be stored")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return storable(text)


Content = Annotated[str, Field(max_length=MAX_CONTENT_CHARS), AfterValidator(_not_blank)]
Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS), AfterValidator(storable)]
Name = Annotated[str, Field(max_length=MAX_NAME_CHARS), AfterValidator(_not_blank)]
Timestamp = Annotated[str, BeforeValidator(to_iso)]
Unit = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Bytes = Annotated[int, Field(ge=0)]
Limit = Annotated[int, Field(ge=0, le=MAX_COUNT, strict=True)]
QueryText = Annotated[str, AfterValidator(storable)]


class _Refusing(BaseModel):
    """Answers bad input with `InvalidInputError`, never with pydantic's own error."""

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise refused(type(self).__name__, error) from None
        except TypeError:
            _refuse_keys(data)
            raise

    @classmethod
    def parse(cls, data: object) -> Self:
        """Validate a mapping or pass an instance through.

        Raises
        ------
        InvalidInputError
            Names the first refused field and its value.
        """
        if isinstance(data, cls):
            return data
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise refused(cls.__name__, error) from None
        except TypeError:
            _refuse_keys(data)
            raise


class Model(_Refusing):
    """Base of what users build and receive: frozen, unknown fields refused, camelCase accepted.

    Raises
    ------
    InvalidInputError
        From the constructor and from `parse`: names the first refused field and its value.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
        defer_build=True,  # a schema is built at its first use: most commands need few
    )


class Strict(_Refusing):
    """Base of what the journal holds: no coercion, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


def checked(kind: Any, value: object, field: str) -> Any:
    """Return an argument as the annotated type `kind` has it.

    Raises
    ------
    InvalidInputError
        Names the argument and the refused value.
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        found = refused("", error)
        name = f"{field}.{found.field}" if found.field else field
        raise InvalidInputError(found.problem, field=name, value=found.value) from None


def _refuse_keys(data: object) -> None:
    """Refuse keys that are no strings, at any depth: pydantic hands them to constructors, which cannot take them."""
    waiting: list[tuple[str, object]] = [("", data)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if not isinstance(name, str):
                    raise InvalidInputError("must have strings as its keys", field=path or "keys", value=name) from None
                waiting.append((f"{path}.{name}" if path else name, inner))
        elif isinstance(value, list | tuple):
            waiting += [(f"{path}.{place}" if path else str(place), inner) for place, inner in enumerate(value)]


@lru_cache(maxsize=64)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def refused(model: str, error: ValidationError) -> InvalidInputError:
    """Translate pydantic's first complaint into memgraph's error, naming field and value."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidInputError):  # a nested model, or a validator, has already named its field
        path = ".".join(str(part) for part in first["loc"])
        return InvalidInputError(
            cause.problem, field=f"{path}.{cause.field}" if path else cause.field, value=cause.value
        )
    problem = str(first["msg"]).removeprefix("Value error, ")
    if error.error_count() > 1:
        problem += f"; {error.error_count() - 1} more are wrong"
    field = ".".join(str(part) for part in first["loc"]) or model
    return InvalidInputError(problem, field=field, value=first.get("input"))
