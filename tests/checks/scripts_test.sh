#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every shell script passes shellcheck.
exec "$(dirname "$0")/../../tools/check-scripts"
