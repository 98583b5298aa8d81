"""gRPC over a `Host`: messages in Protocol Buffers' wire format, calls over HTTP/2, for servers and clients.

HTTP/2 itself is the library h2, which touches no sockets: so all of it runs in the simulator as elsewhere.
"""
