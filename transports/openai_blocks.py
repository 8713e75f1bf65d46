"""Items of a content list of Chat Completions, read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from brute.events.jsontypes import JSON, JSONObject
from brute.events.messages import (
    AnyPart,
    Json,
    Media,
    Native,
    Reasoning,
    Refusal,
    Text,
)
from brute.transports.wire import (
    copied,
    extras,
    from_base64,
    from_data_url,
    is_array,
    is_object,
    json_text,
    objects,
    rest,
    to_base64,
    to_data_url,
)

API = "openai.chat"

URLS = {
    "image_url": "image",
    "video_url": "video",
    "document_url": "document",
    "audio_url": "audio",
}

_KNOWN_TEXT = frozenset({"type", "text"})


def load_block(block: JSON) -> AnyPart:
    """A part of a content list."""
    if not is_object(block):
        return Native(api=API, kind="text", block=block)
    kind = str(block.get("type"))
    part = LOADERS[kind](block) if kind in LOADERS else None
    return part if part is not None else Native(api=API, kind=kind, block=block)


def _load_text(block: JSONObject) -> AnyPart | None:
    text = block.get("text")
    if not isinstance(text, str):
        return None
    return Text(text=text, extras=extras(API, rest(block, _KNOWN_TEXT)))


def _load_refusal(block: JSONObject) -> AnyPart | None:
    text = block.get("refusal")
    if not isinstance(text, str):
        return None
    residual = rest(block, frozenset({"type", "refusal"}))
    return Refusal(text=text, extras=extras(API, {"in": "content", **residual}))


def _load_thinking(block: JSONObject) -> AnyPart | None:
    """Thinking inside content, as Mistral has it: its text is a list of chunks, mostly of one."""
    text, signature = block.get("thinking"), block.get("signature")
    residual = {"in": "content", **rest(block, frozenset({"type", "thinking", "signature"}))}
    if is_array(text):
        chunks = objects(text)
        if len(text) != 1 or not chunks or chunks[0].keys() != {"type", "text"}:
            residual["chunks"] = text
        text = "".join(str(chunk.get("text") or "") for chunk in chunks)
    else:
        residual["plain"] = True
    if not isinstance(text, str) or not isinstance(signature, (str, type(None))):
        return None
    return Reasoning(text=text, signature=signature, extras=extras(API, residual))


def _load_url(block: JSONObject) -> AnyPart | None:
    word = str(block["type"])
    said = block.get(word)
    residual = rest(block, frozenset({"type", word}))
    if is_object(said):
        url, detail = said.get("url"), said.get("detail")
        if inner := rest(said, frozenset({"url", "detail"})):
            residual["inner"] = inner
    else:
        url, detail, residual["bare"] = said, None, True
    if not isinstance(url, str) or not isinstance(detail, (str, type(None))):
        return None
    if word in {"document_url", "audio_url"}:
        residual["as"] = word
    kind = cast(Any, URLS[word])
    data = from_data_url(url)
    held = {"media_type": data[0], "data": data[1]} if data else {"url": url}
    return Media(kind=kind, detail=detail, extras=extras(API, residual), **cast(Any, held))


def _load_audio(block: JSONObject) -> AnyPart | None:
    said = block.get("input_audio")
    if not is_object(said):
        return None
    data, word = from_base64(said.get("data")), said.get("format")
    if data is None or not isinstance(word, str):
        return None
    residual = rest(block, frozenset({"type", "input_audio"}))
    if inner := rest(said, frozenset({"data", "format"})):
        residual["inner"] = inner
    return Media(kind="audio", media_type=f"audio/{word}", data=data, extras=extras(API, residual))


def _load_file(block: JSONObject) -> AnyPart | None:
    said = block.get("file")
    if not is_object(said):
        return None
    data = from_data_url(said.get("file_data"))
    known = {"filename", "file_id", "file_data"} if data else {"filename", "file_id"}
    residual = rest(block, frozenset({"type", "file"}))
    if inner := rest(said, frozenset(known)):
        residual["inner"] = inner
    name, file_id = said.get("filename"), said.get("file_id")
    if not isinstance(name, (str, type(None))) or not isinstance(file_id, (str, type(None))):
        return None
    return Media(
        kind="document",
        media_type=data[0] if data else None,
        data=data[1] if data else None,
        name=name,
        file_id=file_id,
        extras=extras(API, residual),
    )


LOADERS: dict[str, Callable[[JSONObject], AnyPart | None]] = {
    "text": _load_text,
    "refusal": _load_refusal,
    "thinking": _load_thinking,
    "input_audio": _load_audio,
    "file": _load_file,
    **dict.fromkeys(URLS, _load_url),
}


def dump_block(part: AnyPart) -> JSON:
    """A part as an item of a content list."""
    x = part.extra(API)
    if isinstance(part, Text):
        block = {"type": "text", "text": part.text}
        return {**block, **x} if x else block
    if isinstance(part, Native):
        return copied(part.block)
    if isinstance(part, Media):
        return _dump_media(part, x)
    if isinstance(part, Json):
        return {"type": "text", "text": json_text(part.value)}
    x = {k: v for k, v in x.items() if k not in {"in", "chunks", "plain"}}
    if isinstance(part, Reasoning):
        signed = {"signature": part.signature} if part.signature is not None else {}
        return {"type": "thinking", "thinking": _thinking(part), **signed, **x}
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text, **x}
    return {"type": "text", "text": ""}


def _thinking(part: Reasoning) -> JSON:
    x = part.extra(API)
    if x.get("plain"):
        return part.text
    return x.get("chunks", [{"type": "text", "text": part.text}])


def _dump_media(part: Media, x: JSONObject) -> JSONObject:
    inner = x.get("inner", {})
    others = {k: v for k, v in x.items() if k not in {"inner", "bare", "as"}} if x else {}
    url = part.url if part.data is None else to_data_url(part.media_type, part.data)
    if part.kind == "audio" and part.data is not None and "as" not in x:
        said = {"data": to_base64(part.data), "format": audio_format(part.media_type), **inner}
        return {"type": "input_audio", "input_audio": said, **others}
    if part.kind == "document" and "as" not in x:
        data = None if part.data is None else url
        members = {"filename": part.name, "file_id": part.file_id, "file_data": data}
        held = {k: v for k, v in members.items() if v is not None}
        return {"type": "file", "file": {**held, **inner}, **others}
    word = x.get("as", f"{part.kind}_url")
    if x.get("bare"):
        return {"type": word, word: url, **others}
    detail = {"detail": part.detail} if part.detail is not None else {}
    return {"type": word, word: {"url": url, **detail, **inner}, **others}


AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3"}


def audio_format(media_type: str | None) -> str:
    """The word for an audio type: `wav`, `mp3`, or what stands behind the slash."""
    said = media_type or ""
    return AUDIO.get(said, said.removeprefix("audio/"))
