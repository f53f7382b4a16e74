"""Small programs the tests run inside a sandbox. They need nothing but Python's own library."""

# An HTTP server: `serve.py PORT ADDRESS`. Answers JSON about the request; /bytes/N sends N bytes;
# /events starts an event stream that never ends; POST reports the length of the body.
HTTP_SERVER = """
import http.server, json, socket, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Served-By", "sandbox")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/bytes/"):
            return self.reply(b"b" * int(self.path[7:]), "application/octet-stream")
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            number = 0
            while True:
                number += 1
                self.wfile.write(f"data: {number}\\n\\n".encode())
                self.wfile.flush()
                time.sleep(60)
        headers = {k.lower(): v for k, v in self.headers.items()}
        self.reply(json.dumps({"path": self.path, "headers": headers}).encode())

    def do_POST(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            length = 0
            while size := int(self.rfile.readline().split(b";")[0], 16):
                length += len(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        else:
            length = len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.reply(json.dumps({"length": length}).encode())

    def log_message(self, *args):
        pass

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
    daemon_threads = True

Server((sys.argv[2], int(sys.argv[1])), Handler).serve_forever()
"""

# A WebSocket echo server: `echo.py PORT`, bound to 127.0.0.1.
WEBSOCKET_ECHO = """
import base64, hashlib, socketserver, struct, sys

class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        key = b""
        while (line := self.rfile.readline().strip()):
            if line.lower().startswith(b"sec-websocket-key:"):
                key = line.split(b":", 1)[1].strip()
        if not key:
            self.wfile.write(b"HTTP/1.1 400 Bad Request\\r\\nContent-Length: 0\\r\\n\\r\\n")
            return
        magic = key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(magic).digest()).decode()
        self.wfile.write((
            "HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\n"
            f"Connection: Upgrade\\r\\nSec-WebSocket-Accept: {accept}\\r\\n\\r\\n").encode())
        while True:
            first, second = self.rfile.read(2)
            length = second & 0x7F
            if length == 126:
                length = struct.unpack(">H", self.rfile.read(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4)
            data = self.rfile.read(length)
            whole = (mask * (length // 4 + 1))[:length]
            number = int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")
            data = number.to_bytes(length, "big")
            opcode = first & 0x0F
            if opcode == 9:
                opcode = 10
            if length < 126:
                head = struct.pack(">BB", (first & 0xF0) | opcode, length)
            elif length < 65536:
                head = struct.pack(">BBH", (first & 0xF0) | opcode, 126, length)
            else:
                head = struct.pack(">BBQ", (first & 0xF0) | opcode, 127, length)
            self.wfile.write(head + data)
            if opcode == 8:
                return

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

Server(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
"""
