"""These modules run a command that nobody trusts. They show what it wrote and how many bytes it sent."""
