"""What every wire type is made of: the base model, the integers, and which fields are left out when empty."""

from functools import partial
from operator import is_, not_
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field

T = TypeVar("T")


class Wire(BaseModel):
    """One object on the wire. Types are exact; unknown keys are dropped; the fields' order is the keys'."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


def write(model: Wire) -> bytes:
    """The compact JSON of ``model``, without a newline, byte for byte as the protocol wants it."""
    return model.__pydantic_serializer__.to_json(model)


U32 = Annotated[int, Field(ge=0, le=2**32 - 1)]
U64 = Annotated[int, Field(ge=0, le=2**64 - 1)]

Maybe = Annotated[T | None, Field(exclude_if=partial(is_, None))]
"""Optional and omitted when absent. A plain ``T | None`` is written as ``null`` instead."""

Many = Annotated[tuple[T, ...], FailFast()]
"""A list. Its first bad item ends the reading, so that a long bad list costs no more than a good one."""

Items = Annotated[Many[T], Field(exclude_if=not_)]
"""A list that may be missing but not ``null``, omitted when empty."""

Text = Annotated[str, Field(exclude_if=not_)]
"""A string that may be missing but not ``null``, omitted when empty."""
