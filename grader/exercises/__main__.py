"""`python -m grader.exercises` writes the public test cases and their answers. Two runs write the same bytes."""

from grader.exercises import test_cases

if __name__ == "__main__":
    test_cases.PUBLIC.write_text(test_cases.public_text())
    print(f"written: {test_cases.PUBLIC}")
