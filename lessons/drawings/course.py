"""Draws the map of the course: its lessons in their order, each with the question that it answers."""

from lessons.drawings.shapes import MARGIN, Drawing

# The question of each lesson, and the suspect that it clears or convicts.
QUESTIONS = {
    "Start here": "Four workers end worse than one. Why?",
    "Gradient descent and its noise": "What does a batch know of the whole?",
    "One worker": "How fast can one worker be?",
    "Data parallelism by hand": "Is the average right?",
    "Horovod": "Which lines turn one worker into four?",
    "Why it converges worse": "Why is the accuracy lower?",
    "Techniques": "What brings the accuracy back?",
    "Famous results re-examined": "Does it hold for other people?",
    "The assignment": "Can your own program do it right?",
    "Beyond one machine": "And with a thousand workers?",
    "What comes next": "Which tools will you use at work?",
}
ROW = 54


def course_map() -> Drawing:
    """The lessons, from the first question to the tools that one uses after the course."""
    drawing = Drawing(
        "The map of the course",
        " ".join(
            f"Lesson {number:02}, {name}: {question}" for number, (name, question) in enumerate(QUESTIONS.items())
        ),
        ROW * len(QUESTIONS) + 16,
    )
    x = MARGIN + 22
    drawing.wire(x, 34, x, ROW * (len(QUESTIONS) - 0.5), width=4)
    for number, (name, question) in enumerate(QUESTIONS.items()):
        y = 8 + ROW * (number + 0.5)
        drawing.station(x, y, f"{number:02}", "worker1" if name == "The assignment" else "weights")
        drawing.text(x + 34, y - 10, name, "bold", anchor="start")
        drawing.text(x + 34, y + 11, question, "muted", anchor="start")
    return drawing
