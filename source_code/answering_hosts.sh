#!/bin/sh
# Prints the hosts that answer, each with its number of workers. An elastic horovodrun calls it once per second.
# For other hosts: export ELASTIC_HOSTS="alpha:2 beta:2 gamma:2"
for host in ${ELASTIC_HOSTS:-alpha:2 beta:2}; do
    timeout 1 bash -c ": </dev/tcp/${host%:*}/22" 2>/dev/null && echo "$host"
done
true
