#!/usr/bin/env python3
"""Passes TCP connections on, the answers no faster than so many bytes a second in all.

usage: slow.py HOST PORT UPSTREAM_HOST UPSTREAM_PORT BYTES_A_SECOND
"""
import asyncio
import sys
import time

host, port, upstream_host, upstream_port, rate = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
free_at = 0.0  # when the next byte may go


async def copy(reader, writer, limited):
    global free_at
    try:
        while data := await reader.read(65536):
            if limited:
                free_at = max(free_at, time.monotonic()) + len(data) / rate
                await asyncio.sleep(free_at - time.monotonic())
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (OSError, RuntimeError):
        writer.close()


async def serve(reader, writer):
    try:
        from_upstream, to_upstream = await asyncio.open_connection(upstream_host, upstream_port)
    except OSError:
        writer.close()
        return
    await asyncio.gather(copy(reader, to_upstream, False), copy(from_upstream, writer, True))
    to_upstream.close()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, host, port)
    async with server:
        await server.serve_forever()


asyncio.run(main())
