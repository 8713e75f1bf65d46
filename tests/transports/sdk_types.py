"""JSON that fits a request type of an SDK: new blocks enter the tests with an SDK's upgrade."""

from __future__ import annotations

import typing
from types import UnionType
from typing import Any, Literal, Required, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from tests.transports.wires import ARGUMENTS, TEXT, VALUES

BASE64 = st.sampled_from(["QUJD", "iVBORw0KGgo="])
SCALARS: dict[object, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(0, 9),
    float: st.sampled_from([0.5, 1.0]),
    bool: st.booleans(),
    object: VALUES,
    type(None): st.none(),
}


@st.composite
def of_type(draw: st.DrawFn, hint: object) -> Any:
    """JSON of the type, its optional members there or not; nulls are left out."""
    return _drawn(draw, hint, 4)


def _drawn(draw: st.DrawFn, hint: Any, depth: int) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return draw(SCALARS[hint])
    if hasattr(hint, "__required_keys__"):
        return _object(draw, hint, depth)
    if origin in {Required, typing.Annotated}:
        return _drawn(draw, inner[0], depth)
    if origin is Literal:
        return draw(st.sampled_from(inner))
    if origin in {Union, UnionType}:
        # Where a type takes files and paths too, JSON has base64.
        members = [m for m in inner if _is_json(m)]
        return _drawn(draw, draw(st.sampled_from(members)), depth) if members else draw(BASE64)
    if origin is dict:
        return draw(ARGUMENTS)
    size = draw(st.integers(0, 2)) if depth else 0
    return [_drawn(draw, inner[0], depth - 1) for _ in range(size)]


def _is_json(member: Any) -> bool:
    named = (
        member in SCALARS or hasattr(member, "__required_keys__") or get_origin(member) is not None
    )
    return named and "IO" not in str(member) and "PathLike" not in str(member)


def _object(draw: st.DrawFn, hint: Any, depth: int) -> dict[str, Any]:
    whole: bool = hint.__total__
    out: dict[str, Any] = {}
    for name, inner in get_type_hints(hint, include_extras=True).items():
        if whole or get_origin(inner) is Required or draw(st.booleans()):
            value = _drawn(draw, inner, depth)
            if value is not None:
                out[name] = value
    return out
