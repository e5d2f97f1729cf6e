import sys

from plmcore.cli import main

sys.exit(main())
