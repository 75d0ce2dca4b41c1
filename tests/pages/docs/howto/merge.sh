# SPDX-License-Identifier: Apache-2.0
server_here && recorded api-1.cairn api-2.cairn && mkdir recordings && cp api-1.cairn recordings
