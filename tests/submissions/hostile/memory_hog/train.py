"""Takes memory until there is none."""

hoard = []
while True:
    hoard.append(b"\xff" * 2**26)
