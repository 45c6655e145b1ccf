# SPDX-License-Identifier: Apache-2.0
"""Stands where tritonserver does and notes each request, to see how often the proxy sends one.

Takes tritonserver's options; --server-option=--notes=FOLDER names the folder of notes. Paths:
/v2/500 and /v2/503 answer so, /v2/die ends the process with exit code 86, others get 200. Silent
once FOLDER/silent is there.
"""
import http.server
import os
import pathlib
import sys
import threading
import time

OPTIONS = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
NOTES = pathlib.Path(OPTIONS["notes"])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        while (NOTES / "silent").exists():
            time.sleep(0.05)
        self.answer(200)

    def do_POST(self):
        name = self.path.rsplit("/", 1)[1]
        with open(NOTES / name, "a", encoding="utf-8") as notes:  # before the body is there
            notes.write(f"{os.getpid()}\n")
        self.rfile.read(int(self.headers["Content-Length"]))
        if name == "die":
            os._exit(86)
        self.answer(int(name) if name.isdigit() else 200)

    def log_message(self, *_):
        pass


for port in ("grpc-port", "metrics-port"):
    other = http.server.ThreadingHTTPServer(("127.0.0.1", int(OPTIONS[port])), Handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", int(OPTIONS["http-port"])), Handler).serve_forever()
