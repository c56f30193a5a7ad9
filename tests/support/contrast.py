"""The contrast of two colours, as the Web Content Accessibility Guidelines 2.2 define it."""


def luminance(color: str) -> float:
    """Return the relative luminance, 0 to 1, of a colour `#rrggbb` (WCAG 2.2)."""
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast, 1 to 21, of two colours `#rrggbb`."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
