#!/bin/sh
# A FAKE of Windows' httpd.exe, for tests: this system's Apache with what Windows' has compiled in. It takes the
# configuration that was written for Windows. Apache serves nothing as root, so then it becomes nobody.
modules=$(/usr/bin/dirname "$(/usr/bin/dirname "$0")")/modules
set -- "$@" -C "LoadModule mpm_event_module \"$modules/mod_mpm_event.so\""
test -e "$modules/mod_unixd.so" && set -- "$@" -C "LoadModule unixd_module \"$modules/mod_unixd.so\""
apache=/usr/sbin/apache2
test -x "$apache" || apache=/usr/sbin/httpd
test "$(/usr/bin/id -u)" = 0 || exec "$apache" "$@"
/bin/chmod -R a+rwX "$(/usr/bin/dirname "$2")" "$(/bin/sed -n 's/^CacheRoot "\(.*\)"$/\1/p' "$2")"
exec /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups "$apache" "$@"
