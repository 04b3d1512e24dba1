#!/usr/bin/env Rscript
data <- read.csv("data.csv")
cat("sum", sum(data$value), "\n")
