#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All C files have the form that .clang-format gives them.
exec "$(dirname "$0")/../../tools/check-format"
