"""Writes the public probes and their answers: `python -m grader.exercises`. Two runs write the same bytes."""

from grader.exercises import sheet

if __name__ == "__main__":
    sheet.PUBLIC.write_text(sheet.public_text())
    print(f"written: {sheet.PUBLIC}")
