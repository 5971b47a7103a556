"""A program on a pseudo-terminal, and the screen that it shows last."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time


class OnTerminal:
    """The program redraws its whole screen from ESC [H to ESC [J, as `shima top` does."""

    def __init__(self, command, columns=150, lines=24):
        self.output = ""
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.environ.update(LC_ALL="C.UTF-8", TERM="xterm")
            os.execvp(command[0], command)
        self.resize(columns, lines)

    def resize(self, columns, lines):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def read(self, seconds=0.05):
        """False at the end of the program."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.output += data.decode(errors="replace")
        return bool(data)

    def screen(self):
        """The lines of the last whole screen."""
        frames = re.findall(r"\x1b\[H(.*?)\x1b\[J", self.output, re.DOTALL)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", frames[-1]).split("\n") if frames else []

    def until(self, found, what, seconds=30):
        """Reads until the screen's text fulfils a condition; ends the test if it does not."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            goes_on = self.read()
            if found("\n".join(self.screen())):
                return
            if not goes_on:
                break
        print(f"FAIL: {what}; the screen:", *self.screen(), sep="\n", file=sys.stderr)
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        sys.exit(1)

    def end(self):
        """The exit status, once the program has ended."""
        while self.read(1):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
