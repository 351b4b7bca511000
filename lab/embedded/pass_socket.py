"""For OpenSSH's ProxyUseFdpass: connect to a UNIX socket and hand the connection to ssh itself."""

import socket
import sys


def main() -> None:
    """Connect to the path given; pass the connection over standard output, which ssh made a socket."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
        socket.socket(fileno=1) as ssh,
    ):
        connection.connect(sys.argv[1])
        socket.send_fds(ssh, [b"\0"], [connection.fileno()])


if __name__ == "__main__":
    main()
