"""The proxy: RocketMQ's API of version 2 for clients that speak gRPC, in front of brokers that speak remoting.

It keeps no state that has to last: any proxy serves any client, and one that dies takes nothing with it.
"""
