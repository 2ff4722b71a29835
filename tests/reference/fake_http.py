"""What fake services of HTTP have in common: connections that can be cut, answers that break off,
objects of any size."""

import contextlib
import http.server
import socket
import threading


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Cutter:
    """Takes so many bytes, and ends the connection then."""

    def __init__(self, out, left, reset):
        self.out, self.left, self.reset = out, left, reset

    def write(self, data):
        piece = bytes(data[:self.left])
        self.out.write(piece)
        self.left -= len(piece)
        if self.left == 0:
            self.reset()
        return len(piece)

    def __getattr__(self, name):
        return getattr(self.out, name)


class Noughts:
    """An object of any size that is nowhere: of which a test asks for pieces only.  store() takes
    it with an etag."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, piece):
        return bytes(piece.stop - piece.start)


class InjectedError(Exception):
    def __init__(self, status, code, headers):
        super().__init__(status)
        self.status, self.code, self.headers = status, code, headers


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *args):
        super().__init__(*args)
        self.connections, self.connections_lock = set(), threading.Lock()

    def process_request(self, request, client_address):
        with self.connections_lock:
            self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        with self.connections_lock:
            self.connections.discard(request)
        super().shutdown_request(request)

    def cut_connections(self):
        """Also those that a client keeps."""
        with self.connections_lock:
            for request in self.connections:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, client_address):
        pass  # a client that leaves is what tests do
