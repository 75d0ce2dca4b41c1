# SPDX-License-Identifier: Apache-2.0
# alone
needs curl redis-server && loopback pyroscope && stands '--every 10s' '--every 1s' && cat >engine.py <<'END' || return
import http.server
class Engine(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 4040), Engine).serve_forever()
END
python3 engine.py >engine.log 2>&1 &
until curl -s http://pyroscope:4040/; do sleep 0.1; done
