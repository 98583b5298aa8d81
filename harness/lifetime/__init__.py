"""What a process makes on this machine ends with it: directories for a while, child processes, the process itself.

Standard library only, and nothing of the project, so that checkers may use it as well as the harness.
"""
