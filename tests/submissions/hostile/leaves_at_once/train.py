"""All workers leave with status 0, and so does horovodrun: success, if one believes it."""

import os

os._exit(0)
