"""The course's own programs need these modules. The lessons do not explain them."""
