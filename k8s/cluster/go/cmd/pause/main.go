// Command pause holds the namespaces of a pod open until it receives a signal, and reaps orphans in
// pods whose containers share their process namespace.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	exited := make(chan os.Signal, 1)
	signal.Notify(exited, syscall.SIGCHLD)
	for {
		select {
		case <-stop:
			return
		case <-exited:
			for pid := 1; pid > 0; {
				pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			}
		}
	}
}
