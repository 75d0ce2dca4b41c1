# SPDX-License-Identifier: Apache-2.0
[ -n "$IS_WHOLE" ] || { echo "a program of .NET is 54 MB from npm: make check-long takes it, e2e/portable has its shape" && return 77; }
needs npm && npm pack --silent @azure/mcp-linux-x64@2.0.5 >/dev/null 2>&1 || { echo "npm does not bring a program of .NET" && return 77; }
tar -xzf azure-mcp-linux-x64-*.tgz && mv package/dist .program && ln -s .program/azmcp azmcp || return
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 HOME=$PWD
mkfifo .asked && exec 8<>.asked
DOTNET_PerfMapEnabled=1 ./azmcp server start <&8 >/dev/null 2>&1 &
DOC_PID=$! && stands 4242 "$DOC_PID"
until grep -q 'Server' "/tmp/perf-$DOC_PID.map" 2>/dev/null; do sleep 0.1; done
