#!/bin/sh
cat /etc/image-name
