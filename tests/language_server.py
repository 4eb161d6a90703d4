"""yaml-language-server as an editor drives it: open files, wait for what it says of each."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class LanguageServer:
    """A running server that knows one schema, for every file that it is shown."""

    def __init__(self, program: Path, schema: Path) -> None:
        self._settings = {
            "yaml": {
                "schemas": {schema.as_uri(): ["*.yaml"]},
                "schemaStore": {"enable": False},
                "validate": True,
                "yamlVersion": "1.2",
            }
        }
        self._process = subprocess.Popen(
            ["node", str(program), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._request("initialize", {"processId": None, "rootUri": None, "capabilities": _CAPABILITIES})
        self._send({"method": "initialized", "params": {}})
        self._send({"method": "workspace/didChangeConfiguration", "params": {"settings": self._settings}})

    def close(self) -> None:
        """End it; for `contextlib.closing`."""
        self._process.kill()
        self._process.communicate()

    def faults(self, files: Sequence[Path]) -> dict[Path, list[str]]:
        """What the server says of each file; it waits a little after each opening, so all are opened at once."""
        pending = {file.as_uri(): file for file in files}
        for file in files:
            self._open(file, file.read_text("utf-8"))
        found = {}
        while pending:
            message = self._receive()
            params = message.get("params", {})
            if message.get("method") == "textDocument/publishDiagnostics" and params["uri"] in pending:
                found[pending.pop(params["uri"])] = [str(each["message"]) for each in params["diagnostics"]]
        return found

    def completions(self, file: Path, text: str, line: int, column: int) -> list[str]:
        """The words that the server offers at a place, counted from 0, in a file that has faults."""
        self._open_and_wait(file, text)
        return [str(each["label"]) for each in self._ask("completion", file, line, column)["items"]]

    def hover(self, file: Path, text: str, line: int, column: int) -> str:
        """What the server shows at a place, counted from 0, in a file that has faults."""
        self._open_and_wait(file, text)
        answer = self._ask("hover", file, line, column)
        return str(answer["contents"]["value"]) if answer else ""

    def _open(self, file: Path, text: str) -> None:
        document = {"uri": file.as_uri(), "languageId": "yaml", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def _open_and_wait(self, file: Path, text: str) -> None:
        """Until a fault is found: the schema is in force then, which the server reads in its own time."""
        self._open(file, text)
        while True:
            message = self._receive()
            params = message.get("params", {})
            is_of_it = message.get("method") == "textDocument/publishDiagnostics" and params["uri"] == file.as_uri()
            if is_of_it and params["diagnostics"]:
                return

    def _ask(self, what: str, file: Path, line: int, column: int) -> Any:
        place = {"textDocument": {"uri": file.as_uri()}, "position": {"line": line, "character": column}}
        return self._request(f"textDocument/{what}", place)

    def _request(self, method: str, params: dict[str, Any]) -> Any:
        self._send({"id": 1, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == 1 and "method" not in message:
                return message["result"]

    def _receive(self) -> dict[str, Any]:
        """The next message; what the server asks of its editor is answered on the way."""
        assert self._process.stdout
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _colon, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the server ended"
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if "id" in message and "method" in message:
            asked: Sequence[dict[str, Any]] = (message.get("params") or {}).get("items", ())
            result = [self._settings.get(each.get("section", "")) for each in asked]
            self._send({"id": message["id"], "result": result if asked else None})
        return message

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self._process.stdin.flush()


_CAPABILITIES = {
    "workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}},
    "textDocument": {"publishDiagnostics": {}, "hover": {"contentFormat": ["markdown"]}},
}
