#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands for the one file of a release.
exec cairn "$@"
