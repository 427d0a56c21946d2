"""nginx as a plain file server: GET and PUT in one folder, no checks, no fsync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.install import debian
from bench.processes import Child
from bench.servers import HOST, Server, free_port, peer

CONFIG = """
daemon off;
user root;
worker_processes 2;
pid {folder}/pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  client_max_body_size 0;
  client_body_temp_path {folder}/temporary;
  proxy_temp_path {folder}/unused;
  fastcgi_temp_path {folder}/unused;
  uwsgi_temp_path {folder}/unused;
  scgi_temp_path {folder}/unused;
  server {{
    listen {host}:{port};
    root {folder}/files;
    location / {{ dav_methods PUT DELETE; create_full_put_path on; }}
  }}
}}
"""


@contextmanager
def nginx(folder: Path) -> Iterator[Server]:
    program = debian("nginx", "nginx")
    (folder / "files").mkdir()
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, host=HOST, port=port))
    command = [program, "-e", "stderr", "-p", folder, "-c", config]
    with peer(Child(command, folder / "log"), port) as server:
        yield server
