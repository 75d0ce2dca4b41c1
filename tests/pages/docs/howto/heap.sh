# SPDX-License-Identifier: Apache-2.0
running_recorded owners
