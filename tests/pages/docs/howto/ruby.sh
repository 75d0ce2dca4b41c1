# SPDX-License-Identifier: Apache-2.0
# alone
needs ruby3.1 || return
sed -n '/^    def load/,/^    puts/{s/^    //;p}' "$SOURCE_DIR/docs/howto/ruby.md" >rows.rb && cp rows.rb app.rb || return
ruby3.1 -e 'sleep 600' &
DOC_PID=$!
until grep -q libruby "/proc/$DOC_PID/maps"; do sleep 0.05; done
