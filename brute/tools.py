"""Tools: plain typed Python functions, as a model is offered them and as they are run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeGuard, TypeVar, cast, get_type_hints

import msgspec

from brute.events.errors import EncodingError, UsageError, WrongType
from brute.events.events import Failure, ToolSpec
from brute.events.jsontext import dumps, loads
from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import Json, Media, Native, ResultPart, Text, ToolCall

T = TypeVar("T")

ToolFunction: TypeAlias = Callable[..., object]
"""A typed function; its name, docstring and annotations are what the model is told."""

Tool: TypeAlias = ToolFunction | ToolSpec | Mapping[str, Any]
"""A function, or a description alone (a JSON schema) for tools that are run elsewhere."""


def describe(tool: Tool) -> ToolSpec:
    """What the model is told about a tool.

    A function's first paragraph is the description; `Annotated[str, msgspec.Meta(description=…)]`
    describes a parameter. A mapping needs `name`, and may have `description` and `schema`
    (or `parameters`, or `input_schema`).

    Raises `UsageError` when the signature cannot be put into a JSON schema.
    """
    if isinstance(tool, ToolSpec):
        return tool
    if _is_mapping(tool):
        return _from_mapping(tool)
    function = unwrapped(tool)
    if not inspect.isroutine(function):
        give = "a function (def or method), a brute.ToolSpec, or a mapping with name and schema"
        raise WrongType("a tool", tool, give)
    doc = inspect.getdoc(function) or ""
    description = doc.split("\n\n", 1)[0].replace("\n", " ").strip() or None
    return ToolSpec(name=name_of(tool), description=description, schema=schema_of(function))


def _is_mapping(tool: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(tool, Mapping)


def _from_mapping(tool: Mapping[str, Any]) -> ToolSpec:
    inner = cast("Mapping[str, Any]", tool.get("function", tool))
    if "name" not in inner:
        raise UsageError(f"a tool given as a mapping needs a name; found the keys {sorted(tool)}")
    schema = next((inner[k] for k in ("schema", "parameters", "input_schema") if k in inner), None)
    return ToolSpec(name=inner["name"], description=inner.get("description"), schema=schema)


def unwrapped(tool: object) -> ToolFunction:
    """The function itself, inside an effect or not."""
    return cast(ToolFunction, getattr(tool, "fn", tool))


def name_of(tool: Tool) -> str:
    """The name a model calls the tool by."""
    if isinstance(tool, ToolSpec):
        return tool.name
    if _is_mapping(tool):
        return _from_mapping(tool).name
    return cast(str, getattr(tool, "__name__", type(tool).__name__))


_structs: dict[ToolFunction, type[msgspec.Struct]] = {}


def _arguments_struct(function: ToolFunction) -> type[msgspec.Struct]:
    """A struct with the function's parameters as fields: it makes the schema and checks calls."""
    if function in _structs:
        return _structs[function]
    name = getattr(function, "__name__", "tool")
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise UsageError(f"the annotations of tool {name} cannot be read: {error}") from error
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"tool {name}: *{parameter.name} cannot be described to a model")
        hint = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            default = partial(_same, parameter.default)
            fields.append((parameter.name, hint, msgspec.field(default_factory=default)))
    struct = msgspec.defstruct(name, fields, kw_only=True)
    _structs[function] = struct
    return struct


def _same(value: T) -> T:
    return value


def schema_of(function: ToolFunction) -> JSONObject:
    """The JSON schema of a function's parameters."""
    struct = _arguments_struct(function)
    try:
        (schema,), components = msgspec.json.schema_components(
            [struct], ref_template="#/$defs/{name}"
        )
    except TypeError as error:
        raise UsageError(f"tool {struct.__name__}: {error}") from error
    body = components.pop(struct.__name__, schema)
    body.pop("title", None)
    for parameter in inspect.signature(function).parameters.values():
        properties = body.get("properties", {})
        if parameter.default is not parameter.empty and parameter.name in properties:
            try:
                properties[parameter.name]["default"] = msgspec.to_builtins(parameter.default)
            except TypeError:
                continue  # a default that JSON has no word for is not told
    if components:
        body["$defs"] = components
    return cast(JSONObject, body)


def bind(function: ToolFunction, call: ToolCall) -> dict[str, Any]:
    """The keyword arguments for `function` out of a call, checked and converted to its types.

    Raises `msgspec.ValidationError`, which says where and what was found.
    """
    struct = _arguments_struct(function)
    value = msgspec.convert(call.arguments, struct, strict=True)
    return {name: getattr(value, name) for name in struct.__struct_fields__}


def to_content(value: object) -> tuple[ResultPart, ...]:
    """What a tool returned as the parts of a result.

    A text stays a text, parts stay parts, None is nothing, anything else becomes JSON.
    Raises `EncodingError` for what JSON has no word for.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(text=value),)
    if isinstance(value, (Text, Json, Media, Native)):
        return (value,)
    if _is_sequence(value) and value:
        items = list(value)
        if all(isinstance(item, (Text, Json, Media, Native)) for item in items):
            return tuple(cast("list[ResultPart]", items))
    return (Json(value=canonical(value)),)


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (list, tuple))


def canonical(value: object) -> JSON:
    """`value` as JSON gives it back: what a recording stores is what the code goes on with.

    Dataclasses, structs, datetimes, enums and tuples become their JSON form.
    Raises `EncodingError` for what JSON has no word for.
    """
    try:
        plain = msgspec.to_builtins(value)
    except RecursionError:  # nested deeper than it walks, or in a circle; writing it finds out
        plain = value
    except TypeError as error:
        raise EncodingError("", str(error)) from error
    return loads(dumps(plain))


def words_of(error: BaseException) -> str:
    """What an exception says, also if saying it raises."""
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 - the first error is the one that matters
        return f"(its text cannot be had: {type(second).__name__})"


def failure_of(error: BaseException) -> Failure:
    """An exception as a fact: its class by name, its words, and an HTTP status if it has one."""
    try:
        status = getattr(error, "status_code", None) or getattr(error, "status", None)
        body = canonical(getattr(error, "body", None))
    except Exception:  # noqa: BLE001 - what cannot be read or stored is left out
        status = body = None
    return Failure(
        kind=type(error).__name__,
        message=words_of(error),
        status=status if isinstance(status, int) else None,
        body=body,
    )
