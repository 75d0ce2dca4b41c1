# SPDX-License-Identifier: Apache-2.0
"""Firefox without a screen, driven by the protocol that it speaks itself (Marionette: messages of JSON with their
length in front), so that nothing but Debian's package is needed."""

import json
import os
import pathlib
import socket
import subprocess
import time

from cairn_test import PATIENCE_S

PREFERENCES = {"marionette.port": 0, "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
               "app.update.disabledForTesting": True, "network.captive-portal-service.enabled": False}


class Firefox:
    def __init__(self, directory):
        profile = pathlib.Path(directory)
        profile.mkdir()
        (profile / "user.js").write_text("".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
                                                 for name, value in PREFERENCES.items()))
        self.process = subprocess.Popen(["firefox-esr", "--headless", "--no-remote", "--marionette", "--profile", profile],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": str(profile)})
        self.connection = self._connect(profile / "MarionetteActivePort")
        self.count = 0
        self._receive()
        self.call("WebDriver:NewSession", capabilities={})

    def _connect(self, port_file):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", int(port_file.read_text())), PATIENCE_S)
            except (OSError, ValueError):
                time.sleep(0.1)
        self.process.kill()
        raise RuntimeError("Firefox did not start")

    def _receive(self):
        length = b""
        while not length.endswith(b":"):
            length += self._bytes(1)
        return json.loads(self._bytes(int(length[:-1])))

    def _bytes(self, count):
        data = b""
        while len(data) < count:
            piece = self.connection.recv(count - len(data))
            if not piece:
                raise RuntimeError("Firefox has ended")
            data += piece
        return data

    def call(self, command, **arguments):
        self.count += 1
        message = json.dumps([0, self.count, command, arguments]).encode()
        self.connection.sendall(str(len(message)).encode() + b":" + message)
        _, _, error, result = self._receive()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result

    def run(self, script):
        """What a function with this body returns in the page."""
        return self.call("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def wait(self, condition):
        """Whether an expression becomes true."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if self.run(f"return Boolean({condition})"):
                return True
            time.sleep(0.05)
        return False

    def close(self):
        try:
            self.call("Marionette:Quit")
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
