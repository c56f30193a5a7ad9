"""The course's own programs need these modules. A reader of the lesson scripts does not."""
